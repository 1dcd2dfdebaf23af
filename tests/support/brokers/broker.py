"""A broker sized for tests, and the few things every test wants from it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest.mock import patch

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pipeline.local.embedded import node as embedded_node
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.waiting import wait_until

OFFSETS_TOPIC = "__consumer_offsets"
OFFSETS_PARTITIONS = 4

_KAFKA_3_9 = ("org.apache.kafka:kafka_2.13:3.9.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3")

SMALL = {
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "transaction.state.log.num.partitions": "2",
    # A commit with a megabyte of metadata is one of the things to try.
    "message.max.bytes": "4000000",
    # A broker that was killed may come back after this time and not after nine seconds.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # A controller writes a record every half second where nothing happens: a fifth of what an idle broker costs.
    "metadata.max.idle.interval.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
}


def small_broker(**more: str) -> EmbeddedBroker:
    """An `EmbeddedBroker` with few internal partitions; keywords are properties with `_` for `.`."""
    return EmbeddedBroker(
        properties={**SMALL, **{key.replace("_", "."): value for key, value in more.items()}}
    )


@contextmanager
def old_kafka() -> Iterator[None]:
    """Brokers that are started within the block are Kafka 3.9, the last version with the old group coordinator."""
    with patch.object(embedded_node, "KAFKA", _KAFKA_3_9):
        yield


def admin_client(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def create_topics(bootstrap: str, partitions: Mapping[str, int]) -> None:
    """Create topics and return when every partition has a leader."""
    admin = admin_client(bootstrap)
    # One request each: KRaft refuses a request that makes more than 10,000 partitions at once.
    asked = [admin.create_topics([NewTopic(name, n, 1)])[name] for name, n in partitions.items()]
    for future in asked:
        future.result()

    def all_led() -> bool:
        topics = admin.list_topics(timeout=10).topics
        return all(
            name in topics
            and len(topics[name].partitions) == n
            and all(p.leader >= 0 for p in topics[name].partitions.values())
            for name, n in partitions.items()
        )

    # Ten thousand partitions take a minute to make.
    wait_until(all_led, what=f"leaders for {sorted(partitions)}", within_s=300)


def create_offsets_topic(bootstrap: str) -> None:
    """Make the broker create `__consumer_offsets`, as the first group of a cluster does."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "first-group", "log_level": 0})

    def coordinator_answers() -> bool:
        try:
            consumer.committed([TopicPartition("no-such-topic", 0)], timeout=30)
        except KafkaException as error:
            # The partition was made a moment ago and its coordinator is not loaded yet.
            if not error.args[0].retriable() and error.args[0].code() != KafkaError.NOT_COORDINATOR:
                raise
            return False
        return True

    try:
        wait_until(coordinator_answers, what=f"a coordinator for {OFFSETS_TOPIC}")
    finally:
        consumer.close()


def produce(bootstrap: str, topic: str, counts: Mapping[int, int]) -> None:
    """Append that many small records to each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0})
    for partition, count in sorted(counts.items()):
        for number in range(count):
            producer.produce(topic, value=str(number), partition=partition)
    assert producer.flush(30) == 0


def is_alive(pid: int) -> bool:
    """Whether the process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
