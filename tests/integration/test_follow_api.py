"""What librdkafka does with pauses, seeks and positions when its partitions are assigned anew, as each plan does."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Message, TopicPartition

from assignor.clients.confluent import Follower
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import create_topics, produce
from tests.support.waiting import wait_until

TOPIC = "api-topic"
RECORDS = 50
P0, P1 = (TOPIC, 0), (TOPIC, 1)


class Reader:
    """A lone follower, and what it has read."""

    def __init__(self, bootstrap: str, group: str, **more: Any) -> None:
        self.offsets: dict[int, list[int]] = {0: [], 1: []}
        config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
            **more,
        }
        self.follower = Follower(config, [TOPIC], control_topic="api-none", acks_topic="api-none")

    def read(self) -> list[Message]:
        messages = self.follower.consume(10, 0.2)
        for message in messages:
            if message.error() is not None:
                continue
            self.offsets[int(message.partition() or 0)].append(int(message.offset() or 0))
        return messages

    def read_to(self, partition: int, offset: int) -> None:
        def there() -> bool:
            self.read()
            return self.offsets[partition][-1:] == [offset]

        wait_until(there, what=f"offset {offset} of partition {partition}, at {self.offsets[partition][-1:]}")


@pytest.fixture(scope="module")
def bootstrap(broker: EmbeddedBroker) -> str:
    """Of a broker with the records."""
    create_topics(broker.bootstrap_servers, {TOPIC: 2})
    produce(broker.bootstrap_servers, TOPIC, {0: RECORDS, 1: RECORDS})
    return broker.bootstrap_servers


@pytest.fixture
def reader(bootstrap: str, request: pytest.FixtureRequest) -> Iterator[Reader]:
    reader = Reader(bootstrap, f"api-{request.node.name}")
    wait_until(reader.read, what="a first record")
    with reader.follower:
        yield reader


def test_pause_holds_when_a_plan_assigns_anew_and_ends_when_the_partition_comes_back(reader: Reader) -> None:
    reader.follower.pause([TopicPartition(*P0)])
    reader.follower.seek(TopicPartition(*P0, 0))
    reader.follower.seek(TopicPartition(*P1, 0))
    reading = reader.follower._reading
    reading._reassign()
    reader.offsets[0].clear()

    reader.read_to(1, RECORDS - 1)
    assert reader.offsets[0] == []
    reading.assign({P1}, {})
    reading.assign({P0, P1}, {P0: 7})
    reader.read_to(0, RECORDS - 1)

    assert reader.offsets[0] == list(range(7, RECORDS))


def test_resumed_partition_goes_on_where_it_was(reader: Reader) -> None:
    reader.follower.pause([TopicPartition(*P0)])
    reader.follower.seek(TopicPartition(*P0, 3))
    reader.read_to(1, RECORDS - 1)
    reader.offsets[0].clear()

    reader.follower.resume([TopicPartition(*P0)])
    reader.read_to(0, RECORDS - 1)

    assert reader.offsets[0] == list(range(3, RECORDS))


def test_seek_is_where_the_next_record_comes_from_and_outlives_an_assignment(reader: Reader) -> None:
    follower = reader.follower
    reader.read_to(0, RECORDS - 1)
    reader.offsets[0].clear()

    follower.seek(TopicPartition(*P0, OFFSET_BEGINNING))
    follower._reading._reassign()
    assert follower.position([TopicPartition(*P0)])[0].offset == 0
    reader.read_to(0, RECORDS - 1)
    assert reader.offsets[0] == list(range(RECORDS))
    follower.seek(TopicPartition(*P0, OFFSET_END))

    assert follower.position([TopicPartition(*P0)])[0].offset == RECORDS


def test_what_the_consumer_can_be_asked_the_follower_can(reader: Reader) -> None:
    follower = reader.follower
    place = TopicPartition(*P0)
    reader.read_to(0, RECORDS - 1)

    follower.commit(offsets=[TopicPartition(*P0, 9, "a note")], asynchronous=False)

    (committed,) = follower.committed([place], timeout=10)
    assert (committed.offset, committed.metadata) == (9, "a note")
    assert follower.get_watermark_offsets(place, timeout=10) == (0, RECORDS)
    assert follower.get_watermark_offsets(place, cached=True) is not None
    assert [found.offset for found in follower.offsets_for_times([TopicPartition(*P0, 1)], timeout=10)] == [0]
    assert set(follower.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions) == {0, 1}
    assert follower.memberid() == follower.state.member


def test_what_poll_has_handed_out_is_what_a_bare_commit_commits(reader: Reader) -> None:
    follower = reader.follower
    given = dict.fromkeys((0, 1), -1)

    def all_given() -> bool:
        message = follower.poll(0.2)
        if message is not None:
            given[int(message.partition() or 0)] = int(message.offset() or 0)
        if follower._delivered.calm_until_s and min(given.values()) >= 0:
            follower.commit(asynchronous=False)
            counted = [
                place.offset for place in follower.committed([TopicPartition(*P0), TopicPartition(*P1)])
            ]
            assert counted == [given[0] + 1, given[1] + 1]
        return list(given.values()) == [RECORDS - 1, RECORDS - 1]

    follower.seek(TopicPartition(*P0, 5))
    follower.seek(TopicPartition(*P1, 0))
    wait_until(all_given, what=f"all records, at {given}")

    assert follower._delivered.calm_until_s > 0


def test_end_of_a_partition_is_no_record_to_commit(bootstrap: str) -> None:
    reader = Reader(bootstrap, "api-eof", **{"enable.partition.eof": True})
    with reader.follower as follower:
        reader.read_to(0, RECORDS - 1)
        follower.pause([TopicPartition(*P1)])
        follower.seek(TopicPartition(*P0, RECORDS - 1))
        wait_until(lambda: _is_of(P0, follower.consume(1, 0.2), error=False), what="the last record again")
        # librdkafka counts from here on.
        follower._delivered.stay_calm(float("inf"))
        wait_until(lambda: _is_of(P0, follower.consume(1, 0.2), error=True), what="the end")

        follower.commit(asynchronous=False)
        committed = follower.committed([TopicPartition(*P0)], timeout=10)

    assert [place.offset for place in committed] == [RECORDS]


def test_end_of_a_partition_among_records_of_another_one_is_no_record_to_commit(bootstrap: str) -> None:
    reader = Reader(bootstrap, "api-ends", **{"enable.partition.eof": True})
    with reader.follower as follower:
        reader.read_to(0, RECORDS - 1)
        reader.read_to(1, RECORDS - 1)
        follower.seek(TopicPartition(*P0, 0))
        follower.seek(TopicPartition(*P1, RECORDS - 1))
        wait_until(lambda: _is_calm(follower), what="librdkafka to forget where it was")
        ended: set[int | None] = set()

        def is_read() -> bool:
            ended.update(one.partition() for one in follower.consume(100, 0.2) if one.error() is not None)
            return ended == {0, 1}

        wait_until(is_read, what="both ends")
        assert follower._delivered.calm_until_s > 0
        follower.commit(asynchronous=False)
        committed = follower.committed([TopicPartition(*P0), TopicPartition(*P1)], timeout=10)

    assert [place.offset for place in committed] == [RECORDS, RECORDS]


def _is_calm(follower: Follower) -> bool:
    follower._delivered.stay_calm(float("inf"))
    return follower._delivered.calm_until_s > 0


def _is_of(place: tuple[str, int], messages: list[Message], *, error: bool) -> bool:
    return any(
        (one.topic(), one.partition()) == place and (one.error() is not None) is error for one in messages
    )


def test_nothing_comes_of_what_was_given_up_though_it_was_fetched(reader: Reader) -> None:
    follower = reader.follower
    follower.seek(TopicPartition(*P0, 0))
    follower.seek(TopicPartition(*P1, 0))
    wait_until(lambda: reader.read() and follower._delivered.calm_until_s > 0, what="calm")
    given_up_at = len(reader.offsets[0])

    follower._reading.assign({P1}, {})
    # At once, as if the look after a hand-over had come already: librdkafka alone keeps it back.
    follower._delivered.calm_until_s = float("inf")
    reader.read_to(1, RECORDS - 1)

    assert len(reader.offsets[0]) == given_up_at
