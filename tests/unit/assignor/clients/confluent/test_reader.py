"""When lagwise's topics count as read, and when they do not."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, TopicPartition

from assignor.clients.confluent import reader as confluent_reader
from assignor.clients.confluent.heard import Heard
from assignor.clients.confluent.reader import Names, TopicsAwayError, TopicsReader
from assignor.protocol import acks, control
from assignor.protocol.acks import Follows
from tests.support.brokers.mock_cluster import TOO_LARGE, MockCluster
from tests.support.followers.follow_driver import A, head
from tests.support.followers.follow_plans import CLUSTER, GROUP, key_of, plan
from tests.support.waiting import wait_until

CONTROL, ACKS = "control", "acks"
ACCEPTED = Follows(**head(A))
PLAN = plan({"a": [0]}, {"a": [0]}, epoch=5)


class Record:
    """A message, or an error in its place."""

    def __init__(
        self,
        topic: str | None,
        offset: int = 0,
        *,
        key: bytes = b"",
        value: bytes = b"",
        error: int | None = None,
    ) -> None:
        self._topic, self._offset, self._key, self._value = topic, offset, key, value
        self._error = None if error is None else KafkaError(error)

    def topic(self) -> str | None:
        return self._topic

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return self._key

    def value(self) -> bytes:
        return self._value

    def headers(self) -> None:
        return None

    def error(self) -> KafkaError | None:
        return self._error


class Broker:
    """What the topics are like, for the one consumer that is made of it."""

    def __init__(self) -> None:
        self.ends = {CONTROL: 1, ACKS: 7}
        self.since = -1
        self.records: list[Record] = []
        self.problem: int | None = None
        self.partitions = [0]
        self.leaderless: set[int] = set()
        self.assigned: dict[str, int] = {}
        self.added: list[tuple[str, int, int]] = []

    def list_topics(self, topic: str, timeout: float) -> Any:
        assert timeout > 0
        error = None if topic in self.ends else KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return SimpleNamespace(
            cluster_id=CLUSTER,
            topics={topic: SimpleNamespace(error=error, partitions=dict.fromkeys(self.partitions))},
        )

    def offsets_for_times(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout > 0
        if self.problem is not None:
            raise KafkaException(KafkaError(self.problem))
        if self.leaderless & {at.partition for at in asked}:
            raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
        return [
            TopicPartition(
                at.topic, at.partition, self.ends[at.topic] if at.offset == OFFSET_END else self.since
            )
            for at in asked
        ]

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = {partition.topic: partition.offset for partition in partitions}

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self.added += [(added.topic, added.partition, added.offset) for added in partitions]

    def poll(self, _timeout_s: float) -> Record | None:
        return self.records.pop(0) if self.records else None

    def consume(self, _number: int, _timeout_s: float) -> list[Record]:
        return []

    def close(self) -> None:
        pass


def end_of(topic: str) -> Record:
    return Record(topic, error=KafkaError._PARTITION_EOF)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(confluent_reader, "Consumer", lambda _config: broker)
    return broker


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def reader(heard: Heard) -> TopicsReader:
    return TopicsReader(
        {"group.id": GROUP}, Names(control=CONTROL, acks=ACKS, cluster=None, group=GROUP), heard
    )


def test_topics_are_up_when_both_are_read_to_their_end(
    broker: Broker, heard: Heard, reader: TopicsReader
) -> None:
    broker.records = [
        Record(CONTROL, 0, key=key_of(PLAN), value=control.encode(PLAN)),
        end_of(ACKS),
    ]

    with reader._connected():
        assert heard.is_up
        assert heard.plan(0) == PLAN

    assert (heard.is_up, heard.outages) == (False, 1)
    assert broker.assigned == {CONTROL: OFFSET_BEGINNING, ACKS: 7}


@pytest.mark.parametrize("deleted", [3, 5], ids=["some", "all"])
def test_control_topic_whose_first_plans_were_deleted_is_read(deleted: int) -> None:
    with MockCluster(1) as cluster:
        for topic in (CONTROL, ACKS):
            cluster.create(topic, 1)
        cluster.fill(CONTROL, {0: 5})
        cluster.delete_records(CONTROL, 0, before=deleted)
        heard = Heard()
        names = Names(control=CONTROL, acks=ACKS, cluster=None, group=GROUP)

        with TopicsReader(
            {"group.id": GROUP, "bootstrap.servers": cluster.bootstrap}, names, heard
        )._connected():
            assert heard.is_up


def test_acknowledgement_that_cannot_be_unpacked_is_passed_over() -> None:
    with MockCluster(1) as cluster:
        for topic in (CONTROL, ACKS):
            cluster.create(topic, 1)
        heard, names = Heard(), Names(control=CONTROL, acks=ACKS, cluster=None, group=GROUP)
        config = {"group.id": GROUP, "bootstrap.servers": cluster.bootstrap}
        reader = TopicsReader(config, names, heard)

        with reader._connected() as consumer:
            cluster.write(ACKS, (b"0",), TOO_LARGE)
            end = 1 + len(TOO_LARGE)
            wait_until(
                lambda: reader._take(consumer) and reader._positions[ACKS, 0] == end,
                what="the end of the acks",
            )
            cluster.write(ACKS, (b"behind",))
            wait_until(
                lambda: reader._take(consumer) and reader._positions[ACKS, 0] == end + 1, what="what follows"
            )

            assert heard.is_up


def test_acknowledgements_of_the_last_minute_are_heard(
    broker: Broker, heard: Heard, reader: TopicsReader
) -> None:
    broker.since = 6
    broker.records = [
        end_of(CONTROL),
        Record(ACKS, 6, key=acks.encode_key(ACCEPTED), value=acks.encode(ACCEPTED)),
    ]

    with reader._connected():
        assert heard.take_acks() == (ACCEPTED,)

    assert broker.assigned[ACKS] == 6


def test_end_that_no_fetch_has_seen_is_no_proof(
    broker: Broker, heard: Heard, reader: TopicsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confluent_reader, "_CURRENT_WITHIN_S", 0.0)
    broker.records = [end_of(CONTROL)]

    with pytest.raises(TopicsAwayError, match="acks cannot be read"), reader._connected():
        pass

    assert not heard.is_up


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (Record(ACKS, error=KafkaError.TOPIC_AUTHORIZATION_FAILED), "allow READ"),
        (
            Record(ACKS, error=KafkaError.UNKNOWN_TOPIC_OR_PART),
            "acks does not exist; start the lagwise stream",
        ),
        (Record(CONTROL, error=KafkaError._AUTO_OFFSET_RESET), "control cannot be read"),
    ],
    ids=["forbidden", "gone", "out of range"],
)
def test_error_of_a_topic_is_an_outage_with_what_to_do(
    broker: Broker, reader: TopicsReader, record: Record, problem: str
) -> None:
    broker.records = [end_of(CONTROL), end_of(ACKS)]

    with reader._connected() as consumer:
        broker.records = [record]

        with pytest.raises(TopicsAwayError, match=problem):
            reader._read_on(consumer)


def test_partitions_that_the_control_topic_gets_later_are_read_from_their_beginning(
    broker: Broker, heard: Heard, reader: TopicsReader
) -> None:
    broker.records = [end_of(CONTROL), end_of(ACKS)]

    with reader._connected() as consumer:
        broker.partitions = [0, 1, 2]
        for _ in range(2):
            reader._ask(consumer)
        assert heard.is_up

    assert broker.added == [(CONTROL, number, OFFSET_BEGINNING) for number in (1, 2)]


def test_partition_that_has_no_leader_yet_as_the_control_topic_gets_it_is_no_outage(
    broker: Broker, heard: Heard, reader: TopicsReader
) -> None:
    broker.records = [end_of(CONTROL), end_of(ACKS)]

    with reader._connected() as consumer:
        broker.partitions, broker.leaderless = [0, 1], {1}
        reader._ask(consumer)
        assert heard.is_up

    assert broker.added == [(CONTROL, 1, OFFSET_BEGINNING)]


def test_topic_that_ends_before_what_was_read_of_it_was_made_anew(
    broker: Broker, reader: TopicsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confluent_reader, "_ASK_EVERY_S", 0.0)
    broker.records = [end_of(CONTROL), end_of(ACKS)]

    with reader._connected() as consumer:
        broker.ends[ACKS] = 2

        with pytest.raises(TopicsAwayError, match=r"acks .*recreated"):
            reader._read_on(consumer)


def test_error_of_a_broker_makes_the_reader_ask_whether_the_topics_are_there(
    broker: Broker, reader: TopicsReader
) -> None:
    broker.records = [end_of(CONTROL), end_of(ACKS)]

    with reader._connected() as consumer:
        broker.records = [Record(None, error=KafkaError._ALL_BROKERS_DOWN)]
        broker.problem = KafkaError._TRANSPORT

        with pytest.raises(KafkaException):
            reader._read_on(consumer)


def test_error_that_nobody_expected_does_not_end_the_thread(
    broker: Broker, reader: TopicsReader, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(broker, "list_topics", None)
    monkeypatch.setattr(
        reader.end, "wait", lambda seconds: waits.append(seconds) or len(waits) < 3 or reader.end.set()
    )

    reader._run()

    assert waits == [1.0, 2.0, 4.0]
    assert len(caplog.records) == 1
    assert "report it" in caplog.text


def test_each_outage_is_logged_once_with_what_to_do(
    broker: Broker,
    heard: Heard,
    reader: TopicsReader,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    waits = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 5:
            broker.ends[CONTROL] = 1
            broker.records = [
                end_of(CONTROL),
                end_of(ACKS),
                Record(ACKS, error=KafkaError.UNKNOWN_TOPIC_OR_PART),
            ]
        if len(waits) == 6:
            reader.end.set()
        return False

    monkeypatch.setattr(reader.end, "wait", wait)
    del broker.ends[CONTROL]
    with caplog.at_level(logging.INFO):
        reader._run()

    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0, 1.0]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING"]
    assert "topic control does not exist; start the lagwise stream" in caplog.text
    assert heard.outages == 1
