"""Any bytes into `__consumer_offsets` of a real broker, and real commits in transactions that end as one likes.

The broker lets a producer write into an internal topic when its client id is the one of Kafka's own admin client.
Coordinators hold what they know in memory: they do not see these records before the broker starts again. In a
transaction the broker refuses the same (TOPIC_AUTHORIZATION_FAILED for every internal topic), so there the commits
are those that TxnOffsetCommit writes.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from assignor.protocol.kafka.offsets import (
    OffsetCommitKey,
    OffsetCommitValue,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from tests.support.brokers.broker import OFFSETS_PARTITIONS, OFFSETS_TOPIC

_MAY_WRITE_INTERNAL_TOPICS = "__admin_client"
_POLL_EVERY = 10_000
_TIMEOUT_S = 60.0


Offsets = Mapping[tuple[str, int], int]
"""Offset to commit by topic and partition."""


class RawRecord(NamedTuple):
    """One record as it will stand in the offsets topic."""

    partition: int
    key: bytes | None
    value: bytes | None


def offsets_partition(group_id: str, partitions: int = OFFSETS_PARTITIONS) -> int:
    """The partition of the offsets topic that holds the group: Java's hash of its UTF-16 units."""
    units = group_id.encode("utf-16-be")
    total = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        total = (31 * total + (high << 8 | low)) & 0xFFFF_FFFF
    signed = total - (1 << 32) if total >= 1 << 31 else total
    # Kafka takes 0 where the absolute value does not fit into 32 bits.
    return 0 if signed == -(1 << 31) else abs(signed) % partitions


def commit_record(
    group_id: str,
    topic: str,
    partition: int,
    committed_offset: int | None,
    *,
    metadata: str = "",
    commit_timestamp_ms: int = 1_700_000_000_000,
    topic_id: bytes | None = None,
) -> RawRecord:
    """A commit in the group's own partition of the offsets topic; offset null is a tombstone."""
    key = OffsetCommitKey(group_id=group_id, topic=topic, partition=partition)
    value = None
    if committed_offset is not None:
        commit = OffsetCommitValue(
            committed_offset=committed_offset,
            leader_epoch=None,
            topic_id=topic_id,
            metadata=metadata,
            commit_timestamp_ms=commit_timestamp_ms,
        )
        value = encode_offset_commit_value(commit, version=4)
    return RawRecord(offsets_partition(group_id), encode_offset_commit_key(key), value)


def inject(bootstrap: str, records: Iterable[RawRecord]) -> int:
    """Append the records in order, outside any transaction, and return how many they were."""
    return send(injector(bootstrap), records)


def injector(bootstrap: str) -> Producer:
    """A producer for `send`."""
    return Producer(_config(bootstrap))


def many_commits(*, groups: int, topics: int, partitions: int, rounds: int) -> Iterator[RawRecord]:
    """Load: every partition of every topic committed by every group, `rounds` times, one record further each.

    Groups are `load-group-00000…`, topics `load-topic-000…`; the records are of version 4 with a topic id, as
    Kafka 4.1 and later write them.
    """
    names = [(f"load-group-{g:05d}", f"load-topic-{t:03d}") for g in range(groups) for t in range(topics)]
    keys = [
        commit_record(group, topic, partition, None)[:2]
        for group, topic in names
        for partition in range(partitions)
    ]
    commit = OffsetCommitValue(
        committed_offset=0, leader_epoch=0, commit_timestamp_ms=1_700_000_000_000, topic_id=bytes(range(16))
    )
    template = encode_offset_commit_value(commit)
    version, rest = template[:2], template[2 + 8 :]
    for number in range(rounds):
        value = version + number.to_bytes(8, "big") + rest
        for partition, key in keys:
            yield RawRecord(partition, key, value)


def commit_in_transaction(bootstrap: str, group_id: str, offsets: Offsets, *, commit: bool) -> None:
    """Let the group commit in one transaction that is committed or aborted; the topics must exist."""
    with open_transaction(bootstrap, group_id, offsets) as producer:
        if commit:
            producer.commit_transaction(_TIMEOUT_S)


@contextmanager
def open_transaction(bootstrap: str, group_id: str, offsets: Offsets) -> Iterator[Producer]:
    """Let the group commit in a transaction that is open inside the block and aborted after it, if still open."""
    # As long as the broker allows: a slow test is not to see its coordinator abort the transaction.
    timeout = {"transaction.timeout.ms": 900_000}
    producer = Producer({**_config(bootstrap), **timeout, "transactional.id": f"inject-{uuid4()}"})
    producer.init_transactions(_TIMEOUT_S)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group_id, "log_level": 0})
    try:
        producer.begin_transaction()
        commits = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        producer.send_offsets_to_transaction(commits, consumer.consumer_group_metadata(), _TIMEOUT_S)
        yield producer
    finally:
        consumer.close()
        _abort_if_open(producer)


def _abort_if_open(producer: Producer) -> None:
    try:
        producer.abort_transaction(_TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._STATE:
            raise


def send(producer: Producer, records: Iterable[RawRecord]) -> int:
    """`inject` by a producer that goes on."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    count = 0
    for count, record in enumerate(records, start=1):
        producer.produce(
            OFFSETS_TOPIC,
            key=record.key,
            value=record.value,
            partition=record.partition,
            on_delivery=delivered,
        )
        if count % _POLL_EVERY == 0:
            producer.poll(0)
    assert producer.flush(_TIMEOUT_S) == 0, "the broker did not take everything in time"
    assert not failures, failures[0]
    return count


def _config(bootstrap: str) -> dict[str, str | int]:
    return {
        "bootstrap.servers": bootstrap,
        "client.id": _MAY_WRITE_INTERNAL_TOPICS,
        "acks": "all",
        "linger.ms": 20,
        "batch.size": 1_000_000,
        "queue.buffering.max.messages": 10_000_000,
        # A megabyte of metadata is one of the things to try.
        "message.max.bytes": 4_000_000,
        "log_level": 0,
    }
