"""Log offsets from a long-lived client, after what makes a client's metadata untrue."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import NewPartitions

from pipeline.kafka.positions import End
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings
from pipeline.kafka.sources.log_offsets.source import LogOffsetsReader
from pipeline.kafka.sources.records.ends import EndsAsker
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.broker import admin_client, create_topics, produce, small_broker

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def own_broker() -> Iterator[EmbeddedBroker]:
    """One that may be killed."""
    with small_broker() as running:
        yield running


def reader_of(broker: EmbeddedBroker, topic: str) -> LogOffsetsReader:
    return LogOffsetsReader(
        LogOffsetsSettings(
            properties={"bootstrap.servers": broker.bootstrap_servers, "log_level": "0"},
            topics_include=(topic,),
            topics_exclude=(),
            isolation="read_uncommitted",
            request_timeout_s=10,
            splits=2,
        )
    )


def tick(reader: LogOffsetsReader) -> dict[int, int | None]:
    """Log end by partition, as one trigger sees it."""
    rows = [
        row
        for share in reader.partitions({"tick": 0}, {"tick": 1})
        for batch in reader.read(share)
        for row in batch.to_pylist()
    ]
    assert rows[0]["topic"] is None
    return {row["partition"]: row["log_end_offset"] for row in rows[1:]}


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_log_ends_are_right_with_the_second_trigger_after_a_restart(
    own_broker: EmbeddedBroker, how: str
) -> None:
    topic = f"orders-{how}"
    create_topics(own_broker.bootstrap_servers, {topic: 3})
    produce(own_broker.bootstrap_servers, topic, {0: 5, 1: 5, 2: 5})
    reader = reader_of(own_broker, topic)
    before = tick(reader)

    getattr(own_broker, how)()
    own_broker.start()
    produce(own_broker.bootstrap_servers, topic, {0: 2, 1: 2, 2: 2})
    tick(reader)

    assert (before, tick(reader)) == (dict.fromkeys(range(3), 5), dict.fromkeys(range(3), 7))


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_ends_of_the_topics_that_are_read_are_right_with_the_second_batch_after_a_restart(
    own_broker: EmbeddedBroker, how: str
) -> None:
    topic = f"read-{how}"
    create_topics(own_broker.bootstrap_servers, {topic: 3})
    produce(own_broker.bootstrap_servers, topic, {0: 5, 1: 5, 2: 5})
    ask = EndsAsker(lambda: admin_client(own_broker.bootstrap_servers), (topic,), timeout_s=10)
    before = ask()

    getattr(own_broker, how)()
    own_broker.start()
    produce(own_broker.bootstrap_servers, topic, {0: 2, 1: 2, 2: 2})
    ask()

    assert (before, ask()) == (
        {(topic, number): End(log_start=0, stable=5, high=5) for number in range(3)},
        {(topic, number): End(log_start=0, stable=7, high=7) for number in range(3)},
    )


def test_topic_that_was_made_again_between_two_batches_is_read_as_it_is_now(
    own_broker: EmbeddedBroker,
) -> None:
    create_topics(own_broker.bootstrap_servers, {"remade": 2})
    produce(own_broker.bootstrap_servers, "remade", {0: 9, 1: 9})
    ask = EndsAsker(lambda: admin_client(own_broker.bootstrap_servers), ("remade",), timeout_s=10)
    before = ask()

    admin = admin_client(own_broker.bootstrap_servers)
    admin.delete_topics(["remade"])["remade"].result()
    create_topics(own_broker.bootstrap_servers, {"remade": 2})
    produce(own_broker.bootstrap_servers, "remade", {0: 1, 1: 1})
    ask()

    assert ({end.high for end in before.values()}, {end.high for end in ask().values()}) == ({9}, {1})


def test_added_partitions_have_a_log_end_within_two_triggers(own_broker: EmbeddedBroker) -> None:
    create_topics(own_broker.bootstrap_servers, {"grown": 2})
    reader = reader_of(own_broker, "grown")
    before = tick(reader)

    admin = admin_client(own_broker.bootstrap_servers)
    admin.create_partitions([NewPartitions("grown", 5)])["grown"].result()
    produce(own_broker.bootstrap_servers, "grown", {4: 3})
    tick(reader)

    assert (before, tick(reader)) == ({0: 0, 1: 0}, {0: 0, 1: 0, 2: 0, 3: 0, 4: 3})


def test_recreated_topic_is_asked_for_under_its_new_leaders(own_broker: EmbeddedBroker) -> None:
    create_topics(own_broker.bootstrap_servers, {"again": 2})
    produce(own_broker.bootstrap_servers, "again", {0: 9, 1: 9})
    reader = reader_of(own_broker, "again")
    before = tick(reader)

    admin = admin_client(own_broker.bootstrap_servers)
    admin.delete_topics(["again"])["again"].result()
    create_topics(own_broker.bootstrap_servers, {"again": 2})
    produce(own_broker.bootstrap_servers, "again", {0: 1, 1: 1})
    tick(reader)

    assert (before, tick(reader)) == ({0: 9, 1: 9}, {0: 1, 1: 1})
