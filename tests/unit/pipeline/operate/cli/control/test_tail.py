import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from assignor.protocol.control import (
    ControlMember,
    ControlMove,
    ControlReasons,
    ControlRecord,
    encode,
    encode_key,
)
from pipeline.errors import AccessRefusedError, BrokerUnavailableError
from pipeline.operate.cli.control.entry import entry
from pipeline.operate.poll import messages

_KEY = encode_key("c", "billing")
_PLAN = encode(
    ControlRecord(
        cluster="c",
        group="billing",
        epoch=17,
        strategy="lag-aware",
        dry_run=False,
        created_at_ms=1_760_000_000_000,
        valid_until_ms=1_760_000_600_000,
        base_generation=4,
        base_protocol="range",
        members={"m": ControlMember(instance=None, client="c", host="/h", base={"t": (0,)}, target={})},
        moves=(ControlMove(topic="t", partition=0, from_member="m", to_member=None),),
        unassigned={},
        why=ControlReasons(drain_s_before=1.0, drain_s_after=None, drain_s_bound=None, lag=3),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    """A message as confluent_kafka has it, or one of its errors."""

    data: bytes | None = b""
    failure: KafkaError | None = None
    number: int = 0
    at_ms: int = 1_760_000_000_123

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return 5

    def timestamp(self) -> tuple[int, int]:
        return (1, self.at_ms)

    def key(self) -> bytes:
        return _KEY

    def value(self) -> bytes | None:
        return self.data

    def error(self) -> KafkaError | None:
        return self.failure


class _ScriptedConsumer:
    """Answers polls with a list; asking beyond it is the test's failure."""

    def __init__(self, answers: Sequence[_Message | None]) -> None:
        self.answers = iter(answers)

    def poll(self, _timeout_s: float) -> Any:
        return next(self.answers)


def _end(number: int = 0) -> _Message:
    return _Message(failure=KafkaError(KafkaError._PARTITION_EOF), number=number)


def test_plan_is_one_line() -> None:
    assert entry(_Message(data=_PLAN)).as_text() == (
        "2025-10-09T08:53:20.123Z  0@5  billing  epoch 17  lag-aware  1 move  "
        "to be followed until 2025-10-09T09:03:20.000Z"
    )


def test_plan_for_the_broker_says_who_follows_it() -> None:
    plan = json.dumps({**json.loads(_PLAN), "group_protocol": "consumer"}).encode()

    assert "to be followed by the broker until" in entry(_Message(data=plan)).as_text()


def test_json_has_the_plan_as_published_with_fields_of_later_versions() -> None:
    later = json.dumps({**json.loads(_PLAN), "colour": "blue"}).encode()

    record = entry(_Message(data=later)).record

    assert record == {**json.loads(_PLAN), "colour": "blue"}


def test_null_value_is_a_withdrawal() -> None:
    found = entry(_Message(data=None))

    assert (found.record, found.damaged) == (None, None)
    assert found.as_text().endswith('{"cluster":"c","group":"billing"}  withdrawn')


@pytest.mark.parametrize("value", [b"", b"\xff", b"{}", b"\x1b[31m", b"[" * 100_000, _PLAN[:-1]])
def test_damaged_value_is_shown_as_such(value: bytes) -> None:
    found = entry(_Message(data=value))

    assert found.record is None
    assert "damaged: " in found.as_text()
    assert found.as_text().isprintable()


def test_reason_cannot_steer_the_terminal() -> None:
    damaged = replace(entry(_Message(data=b"")), damaged="bad \x1b[31m")

    assert damaged.as_text().endswith(r"damaged: bad \x1b[31m")


def test_without_follow_it_ends_when_every_partition_was_at_its_end() -> None:
    first, second = _Message(number=0), _Message(number=1)
    consumer: Any = _ScriptedConsumer([first, _end(0), None, _end(0), second, _end(1)])

    assert list(messages(consumer, topic="t", partitions=2, follow=False)) == [first, second]


def test_following_goes_on_after_the_end() -> None:
    late = _Message()
    consumer: Any = _ScriptedConsumer([_end(), None, late])

    assert next(messages(consumer, topic="t", partitions=1, follow=True)) is late


def test_broker_that_goes_away_is_waited_for() -> None:
    gone = _Message(failure=KafkaError(KafkaError._TRANSPORT, "gone", retriable=True))
    late = _Message()
    consumer: Any = _ScriptedConsumer([gone, late])

    assert next(messages(consumer, topic="t", partitions=1, follow=True)) is late


def test_refusal_is_told() -> None:
    refused = _Message(failure=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    consumer: Any = _ScriptedConsumer([refused])

    with pytest.raises(AccessRefusedError, match="authorization failed"):
        next(messages(consumer, topic="t", partitions=1, follow=True))


@pytest.mark.parametrize(
    "answer",
    [None, _Message(failure=KafkaError(KafkaError._TRANSPORT, "gone", retriable=True))],
    ids=["nothing", "gone"],
)
def test_silence_ends_when_it_is_limited(answer: _Message | None) -> None:
    consumer: Any = _ScriptedConsumer([_Message(), answer])
    found = messages(consumer, topic="t", partitions=1, follow=False, silence_s=-1.0)

    next(found)

    with pytest.raises(
        BrokerUnavailableError, match="topic t could not be read to its end: no broker answered for"
    ):
        next(found)


@pytest.mark.parametrize("at_ms", [253_402_300_800_000, 2**62])
def test_time_of_a_record_that_no_calendar_reaches_is_shown_as_it_is(at_ms: int) -> None:
    assert entry(_Message(data=None, at_ms=at_ms)).as_text().startswith(f"{at_ms} ms  0@5  ")  # type: ignore[arg-type]
