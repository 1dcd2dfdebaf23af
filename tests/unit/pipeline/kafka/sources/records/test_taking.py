"""Messages of a consumer, taken column by column, come to the same as one by one."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.kafka.positions import REFUSED, TRUNCATED, PartitionKey, Span
from pipeline.kafka.sources.records.taking import Progress, take

END = KafkaError._PARTITION_EOF
GONE, SILENT = KafkaError.OFFSET_OUT_OF_RANGE, KafkaError.REQUEST_TIMED_OUT
PLACES: tuple[PartitionKey, ...] = (("t", 0), ("t", 1), ("u", 0))


@dataclass(frozen=True, slots=True)
class Said:
    """What a consumer gives for a record, or for an error when it has a code."""

    place: tuple[str | None, int]
    at: int
    code: int | None = None
    at_ms: int = 5

    def topic(self) -> str | None:
        return self.place[0]

    def partition(self) -> int:
        return self.place[1]

    def offset(self) -> int:
        return self.at

    def error(self) -> KafkaError | None:
        return None if self.code is None else KafkaError(self.code)

    def leader_epoch(self) -> int | None:
        return 100 + self.at if self.place[1] else None

    def timestamp(self) -> tuple[int, int]:
        return 1, self.at_ms

    def key(self) -> bytes:
        return b"k%d" % self.at

    def value(self) -> bytes | None:
        return None if self.at % 2 else b"v"


def spans() -> dict[PartitionKey, Progress]:
    """Of `PLACES` but the last, from 0 to 5."""
    return {
        place: Progress(Span(topic=place[0], partition=place[1], start=0, end=5), 0, 7)
        for place in PLACES[:2]
    }


def taken(
    messages: list[Said], progress: dict[PartitionKey, Progress]
) -> tuple[list[Any], set[PartitionKey]]:
    batch, answered = take(cast("list[Message]", messages), progress)
    return batch.to_pylist(), answered


def one_by_one(messages: list[Said], progress: dict[PartitionKey, Progress]) -> Iterator[Said]:
    """The rules, message by message."""
    for message in messages:
        one = progress.get(cast("PartitionKey", message.place))
        if one is None or one.is_over:
            continue
        if message.code is not None:
            if message.code == END:
                one.end_at(5 if message.at >= 5 else one.offset)
            else:
                text = KafkaError(message.code).str()
                one.end_at(one.offset, f"{TRUNCATED}: {text}" if message.code == GONE else text)
        elif message.at >= 5:
            one.end_at(5)
        else:
            epoch = message.leader_epoch()
            one.leader_epoch, one.offset = (-1 if epoch is None else epoch), message.at + 1
            one.is_over = one.offset >= 5
            yield message


@st.composite
def streams(draw: st.DrawFn) -> list[Said]:
    """Of each partition offsets that rise, with gaps and errors between them, in turns."""
    next_offset: dict[Any, int] = defaultdict(int)
    messages = []
    for place in draw(st.lists(st.sampled_from([*PLACES, (None, -1)]), max_size=20)):
        offset = next_offset[place] + draw(st.integers(0, 2))
        code = draw(st.sampled_from([None, None, None, None, END, GONE, SILENT]))
        if code is None:
            next_offset[place] = offset + 1
        messages.append(Said(place, offset, SILENT if place[0] is None else code))
    return messages


@given(streams())
@settings(deadline=None)
def test_columns_say_what_the_rules_say_message_by_message(messages: list[Said]) -> None:
    by_rule, by_column = spans(), spans()
    expected = list(one_by_one(messages, by_rule))

    rows, answered = taken(messages, by_column)

    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [
        (*message.place, message.at) for message in expected
    ]
    assert [(row["key"], row["value"]) for row in rows] == [(one.key(), one.value()) for one in expected]
    assert by_column == by_rule
    assert answered == {message.place for message in messages} & set(spans())


def test_span_that_was_over_before_takes_nothing_and_does_not_answer() -> None:
    progress = spans()
    progress["t", 0].end_at(3)

    assert taken([Said(("t", 0), 3), Said(("t", 0), 4, GONE)], progress) == ([], set())
    assert (progress["t", 0].offset, progress["t", 0].error) == (3, None)


@pytest.mark.parametrize("at_ms", [2**63 - 1, -(2**63), (2**63 - 1) // 1000 + 1])
def test_time_that_no_column_can_hold_is_unknown(at_ms: int) -> None:
    rows, _ = taken([Said(("t", 0), 0, at_ms=at_ms), Said(("t", 0), 1)], spans())

    assert [row["timestamp"] is None for row in rows] == [True, False]


def test_nothing_comes_of_no_messages() -> None:
    assert taken([], spans()) == ([], set())


def test_refusal_of_a_leader_is_told_from_other_errors() -> None:
    progress = spans()

    taken([Said(PLACES[0], 0, KafkaError.TOPIC_AUTHORIZATION_FAILED), Said(PLACES[1], 0, SILENT)], progress)

    first, second = (str(progress[place].error) for place in PLACES[:2])
    assert first.startswith(f"{REFUSED}: ")
    assert not second.startswith(REFUSED)
