"""Log offsets from a long-lived client, after what makes a client's metadata untrue."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka.admin import NewPartitions

from pipeline.config.model import Isolation
from pipeline.kafka.positions import End
from pipeline.kafka.sources.log_offsets.ask import ask, shares
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings
from pipeline.kafka.sources.records.ends import EndsAsker
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import (
    admin_client,
    create_offsets_topic,
    create_topics,
    produce,
    small_broker,
)
from tests.support.brokers.inject import open_transaction
from tests.support.waiting import wait_until

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def own_broker() -> Iterator[EmbeddedBroker]:
    """One that may be killed."""
    with small_broker() as running:
        yield running


def settings_of(broker: EmbeddedBroker, topic: str) -> LogOffsetsSettings:
    return LogOffsetsSettings(
        properties={"bootstrap.servers": broker.bootstrap_servers, "log_level": "0"},
        topics_include=(topic,),
        topics_exclude=(),
        isolation="read_uncommitted",
        request_timeout_s=10,
        splits=2,
    )


def asked(settings: LogOffsetsSettings) -> dict[int, int | None]:
    """Log end by partition, as one batch sees it."""
    rows = [row for share in shares(settings, tasks=2) for row in ask(settings, share).to_pylist()]
    assert rows[0]["topic"] is None
    return {row["partition"]: row["log_end_offset"] for row in rows[1:]}


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_log_ends_are_right_with_the_second_batch_after_a_restart(
    own_broker: EmbeddedBroker, how: str
) -> None:
    topic = f"orders-{how}"
    create_topics(own_broker.bootstrap_servers, {topic: 3})
    produce(own_broker.bootstrap_servers, topic, {0: 5, 1: 5, 2: 5})
    settings = settings_of(own_broker, topic)
    before = asked(settings)

    getattr(own_broker, how)()
    own_broker.start()
    produce(own_broker.bootstrap_servers, topic, {0: 2, 1: 2, 2: 2})
    asked(settings)

    assert (before, asked(settings)) == (dict.fromkeys(range(3), 5), dict.fromkeys(range(3), 7))


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


def test_added_partitions_have_a_log_end_within_two_batches(own_broker: EmbeddedBroker) -> None:
    create_topics(own_broker.bootstrap_servers, {"grown": 2})
    settings = settings_of(own_broker, "grown")
    before = asked(settings)

    admin = admin_client(own_broker.bootstrap_servers)
    admin.create_partitions([NewPartitions("grown", 5)])["grown"].result()
    produce(own_broker.bootstrap_servers, "grown", {4: 3})
    asked(settings)

    assert (before, asked(settings)) == ({0: 0, 1: 0}, {0: 0, 1: 0, 2: 0, 3: 0, 4: 3})


def test_recreated_topic_is_asked_for_under_its_new_leaders(own_broker: EmbeddedBroker) -> None:
    create_topics(own_broker.bootstrap_servers, {"again": 2})
    produce(own_broker.bootstrap_servers, "again", {0: 9, 1: 9})
    settings = settings_of(own_broker, "again")
    before = asked(settings)

    admin = admin_client(own_broker.bootstrap_servers)
    admin.delete_topics(["again"])["again"].result()
    create_topics(own_broker.bootstrap_servers, {"again": 2})
    produce(own_broker.bootstrap_servers, "again", {0: 1, 1: 1})
    asked(settings)

    assert (before, asked(settings)) == ({0: 9, 1: 9}, {0: 1, 1: 1})


def test_leaders_and_replicas_come_with_the_log_ends(own_broker: EmbeddedBroker) -> None:
    topic = "orders-replication"
    create_topics(own_broker.bootstrap_servers, {topic: 2})
    settings = settings_of(own_broker, topic)
    (broker,) = admin_client(own_broker.bootstrap_servers).list_topics(timeout=10).brokers

    asked(settings)
    listing, *rows = [row for share in shares(settings, tasks=2) for row in ask(settings, share).to_pylist()]

    assert listing["brokers"] == 1
    names = ("leader_broker", "preferred_leader", "replicas", "in_sync_replicas")
    assert [[row[name] for name in names] for row in rows] == [[broker, broker, 1, 1]] * 2


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_last_stable_offset_stands_before_an_open_transaction_whatever_the_log_end(
    own_broker: EmbeddedBroker, isolation: Isolation
) -> None:
    topic = f"orders-{isolation.replace('_', '-')}"
    create_topics(own_broker.bootstrap_servers, {topic: 1})
    create_offsets_topic(own_broker.bootstrap_servers)
    produce(own_broker.bootstrap_servers, topic, {0: 5})
    settings = replace(settings_of(own_broker, topic), isolation=isolation)

    def ends() -> tuple[int, int]:
        _, row = (row for share in shares(settings, tasks=2) for row in ask(settings, share).to_pylist())
        return row["last_stable_offset"], row["log_end_offset"]

    before = ends()
    with open_transaction(own_broker.bootstrap_servers, topic, {(topic, 0): 1}) as producer:
        producer.produce(topic, b"held back", partition=0)
        producer.flush(10)
        during = ends()
        producer.commit_transaction(10)
        # The marker at its end is a record, too.
        wait_until(lambda: ends() == (7, 7), what="the end of the transaction")

    assert (before, during) == ((5, 5), (5, 6 if isolation == "read_uncommitted" else 5))
