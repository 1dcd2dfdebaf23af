"""`Following` of kafka-python on fakes of its reader and its writer: what it says, and that it goes on."""

import json
import logging
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaConfigurationError, KafkaConnectionError, KafkaTimeoutError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from assignor.clients.kafka_python import (
    EAGER,
    Following,
    FollowingMisusedError,
    ForkedError,
    MemberAssignor,
    background,
    making,
)
from assignor.clients.plugin.membership import NotAttachedError
from assignor.clients.plugin.user_data import AssignmentData, Outcome, encode_assignment_data
from assignor.protocol import acks, control
from assignor.protocol.acks import AnyAck, Refused
from tests.support.followers.plans import plan
from tests.support.waiting import wait_until

NOWHERE = {"bootstrap_servers": "127.0.0.1:1", "api_version": (2, 5)}


class Reader:
    """A control topic of one partition."""

    DEFAULT_CONFIG = KafkaConsumer.DEFAULT_CONFIG
    made: ClassVar[int] = 0
    records: ClassVar[list[Any]] = []
    failing: ClassVar[list[Exception]] = []
    """What reading raises, the first time, the second, and so on."""
    settings: ClassVar[dict[str, Any]] = {}
    """Of the newest one."""
    position_, end_, topic_id_ = 5, 5, "one"

    def __init__(self, *_: str, **settings: Any) -> None:
        assert set(settings) <= set(KafkaConsumer.DEFAULT_CONFIG)
        Reader.made += 1
        Reader.settings = settings
        self._cluster = SimpleNamespace(topic_id=lambda _: Reader.topic_id_)

    def poll(self, *, timeout_ms: int) -> dict[str, Any]:
        del timeout_ms
        if Reader.failing:
            raise Reader.failing.pop(0)
        polled, Reader.records = Reader.records, []
        return {"t-0": polled}

    def assignment(self) -> set[int]:
        return {0}

    def end_offsets(self, _partitions: list[int], *, timeout_ms: int) -> dict[int, int]:
        del timeout_ms
        return {0: Reader.end_}

    def position(self, _partition: int, *, timeout_ms: int) -> int:
        del timeout_ms
        return Reader.position_

    def close(self, *, timeout_ms: int) -> None: ...


class Writer:
    """A producer that keeps what it is to send."""

    DEFAULT_CONFIG = KafkaProducer.DEFAULT_CONFIG
    sent: ClassVar[list[AnyAck]] = []
    fails: ClassVar[bool] = False

    def __init__(self, **settings: Any) -> None:
        # The settings are those of a producer, whatever else the reader of the control topic was given.
        KafkaProducer(**settings).close()

    def send(self, topic: str, *, key: bytes, value: bytes, partition: int) -> Any:
        assert (topic, partition) == ("acks", 0)
        if Writer.fails:
            raise KafkaTimeoutError
        self.sent.append(acks.decode(key, value))
        return SimpleNamespace(add_errback=lambda _: None, add_callback=lambda _: None)

    def close(self, _within_s: float) -> None: ...


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[AnyAck]:
    monkeypatch.setattr(background, "KafkaConsumer", Reader)
    monkeypatch.setattr(background, "KafkaProducer", Writer)
    for name in ("FIRST_PROBE_AFTER_S", "PROBE_EVERY_S", "RETRY_AFTER_S"):
        monkeypatch.setattr(background, name, 0.01)
    monkeypatch.setattr(background, "_POLL_MS", 10)
    for name in ("made", "records", "failing", "settings", "position_", "end_", "topic_id_"):
        monkeypatch.setattr(Reader, name, type(getattr(Reader, name))(getattr(Reader, name)))
    monkeypatch.setattr(Writer, "fails", False)
    monkeypatch.setattr(Writer, "sent", [])
    return Writer.sent


def idle() -> Any:
    """A consumer whose group is at rest."""
    coordinator = SimpleNamespace(rebalance_in_progress=lambda: False)
    return SimpleNamespace(_coordinator=coordinator, group_metadata=lambda: SimpleNamespace(member_id="m"))


def refused(assignor: MemberAssignor) -> None:
    """What the leader says where plan 3 does not fit."""
    word = encode_assignment_data(AssignmentData(epoch=3, outcome=Outcome.REFUSED, why="not mine"))
    assignor.on_assignment(ConsumerProtocolAssignment(version=0, assigned_partitions=[], user_data=word), 8)


@contextmanager
def started(acks_topic: str | None = "acks") -> Iterator[Following]:
    with Following(
        cluster="local", group_id="g", protocol=EAGER, acks_topic=acks_topic, **NOWHERE
    ) as following:
        following.attach(idle())
        yield following


def test_following_needs_its_consumer_to_keep_up() -> None:
    with (
        Following(cluster="local", group_id="g", protocol=EAGER, **NOWHERE) as following,
        pytest.raises(NotAttachedError, match="attach"),
    ):
        following.keep_up()


def test_following_acknowledges_what_became_of_the_plan(sent: list[AnyAck]) -> None:
    with started() as following:
        refused(following.assignor)

        wait_until(lambda: sent, what="an acknowledgement")

    assert [(ack.member, ack.epoch, ack.generation, ack.why) for ack in sent if isinstance(ack, Refused)] == [
        ("m", 3, 8, "not mine")
    ]


def test_following_without_an_acks_topic_says_nothing(sent: list[AnyAck]) -> None:
    with started(acks_topic=None) as following:
        refused(following.assignor)

        wait_until(lambda: not following.assignor.acks, what="no more to acknowledge")

    assert sent == []


def test_acknowledgements_that_cannot_be_sent_are_told_once(
    sent: list[AnyAck], caplog: pytest.LogCaptureFixture
) -> None:
    Writer.fails = True

    with started() as following:
        refused(following.assignor)
        refused(following.assignor)
        wait_until(lambda: not following.assignor.acks, what="no more to acknowledge")

    ours = [record for record in caplog.records if record.name.startswith("assignor")]
    assert (sent, [record.levelname for record in ours]) == ([], ["WARNING"])


def test_acknowledgement_after_a_failure_goes_by_a_new_producer(sent: list[AnyAck]) -> None:
    Writer.fails = True

    with started() as following:
        refused(following.assignor)
        wait_until(lambda: not following.assignor.acks, what="a failure")
        failed = following._background._writer
        wait_until(lambda: following._background._has_failed, what="its being noticed")
        Writer.fails = False
        refused(following.assignor)
        wait_until(lambda: sent, what="an acknowledgement")

        assert following._background._writer is not failed


@pytest.mark.parametrize("error", [KafkaConnectionError(), ZeroDivisionError()])
def test_reader_that_fails_is_told_once_and_begins_anew(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    Reader.failing.extend([error] * 3)

    with caplog.at_level(logging.INFO, logger="assignor"), started() as following:
        wait_until(lambda: "resolved" in caplog.text, what="a reading that works")
        following.keep_up()

    assert Reader.made == 4
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


@pytest.mark.parametrize(("name", "value"), [("end_", 2), ("topic_id_", "another")])
def test_topic_that_was_made_again_is_read_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, value: Any
) -> None:
    with started() as following:
        background_ = following._background
        wait_until(lambda: background_._reader and background_._reader.is_sound, what="a sound reading")
        monkeypatch.setattr(Reader, name, value)

        wait_until(lambda: Reader.made > 1, what="another reading")

    (told,) = [record for record in caplog.records if record.name.startswith("assignor")]
    assert "recreated" in told.__dict__["problem"]


def test_leader_waits_for_a_plan_that_a_member_has_read_before_it() -> None:
    record = plan({"a": {}}, {"a": {}}, epoch=4)
    key, value = control.encode_key("local", "g"), control.encode(record)

    with started() as following:
        background_ = following._background
        wait_until(lambda: background_._reader, what="a reading")
        Reader.records = [SimpleNamespace(key=key, value=value, headers=[])]
        background_.wait_for(4, within_s=10)

        assert background_._state.epoch == 4


def test_leader_does_not_wait_where_the_topic_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "RETRY_AFTER_S", 60)
    Reader.failing.append(KafkaConnectionError())

    with started() as following:
        background_ = following._background
        wait_until(lambda: not Reader.failing and background_._reader is None, what="trouble")

        background_.wait_for(4, within_s=600)


def test_reader_of_plans_is_alone_and_reads_bytes_where_its_consumer_is_static_and_deserializes() -> None:
    theirs = {"group_instance_id": "a", "key_deserializer": bytes.decode, "value_deserializer": json.loads}

    with Following(cluster="local", group_id="g", **theirs, **NOWHERE) as following:
        following.attach(idle())
        wait_until(lambda: Reader.made, what="a reader")

    with closing(KafkaConsumer(**Reader.settings)) as reader:
        assert [reader.config[name] for name in theirs] == [None] * 3


def test_setting_that_no_consumer_has_is_refused() -> None:
    with pytest.raises(KafkaConfigurationError, match="unheard_of"):
        Following(cluster="local", group_id="g", unheard_of=1)


def test_forked_process_is_told_and_leaves_the_follower_of_its_parent_alone(sent: list[AnyAck]) -> None:
    with started() as following:
        child = os.fork()
        if child == 0:
            # Nothing of the test may go on here.
            try:
                following.keep_up()
            except ForkedError as error:
                following.close()
                os._exit(7 if f"process {os.getppid()}" in str(error) else 1)
            finally:
                os._exit(2)
        _, status = os.waitpid(child, 0)
        refused(following.assignor)
        wait_until(lambda: sent, what="an acknowledgement of the parent")

    assert os.waitstatus_to_exitcode(status) == 7


def test_following_that_was_closed_takes_no_other_consumer() -> None:
    with started() as following:
        following.keep_up()

    with pytest.raises(FollowingMisusedError, match="create a Following for each consumer"):
        following.attach(idle())
    # Its consumer may still be about to stop.
    following.keep_up()
    following.close()


def test_client_that_cannot_be_made_leaves_no_thread() -> None:
    ended: list[str] = []

    def begun(**_: Any) -> Any:
        return SimpleNamespace(close=lambda: ended.append("closed"))

    def client(**settings: Any) -> None:
        settings["kafka_client"]()
        raise KafkaConnectionError

    with pytest.raises(KafkaConnectionError):
        making.made(client, kafka_client=begun)

    assert ended == ["closed"]
