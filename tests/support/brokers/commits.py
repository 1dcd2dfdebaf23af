"""The commits of a group, as the broker has taken them."""

from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from assignor.protocol.kafka.offsets import (
    decode_offset_commit_key,
    decode_offset_commit_value,
    group_id_of,
    record_type_of,
)
from assignor.protocol.kafka.record_types import OFFSET_COMMIT_TYPES
from assignor.protocol.marks import HandOverMark, split
from tests.support.brokers.broker import OFFSETS_PARTITIONS, OFFSETS_TOPIC
from tests.support.waiting import wait_until


class Commit(NamedTuple):
    """A commit, as the broker has stored it."""

    partition: int
    offset: int
    at_ms: int
    mark: HandOverMark | None


def set_back(bootstrap: str, group: str) -> list[tuple[int, int, int]]:
    """Commits that the group has gone behind: partition of the topic, offset before, and after."""
    newest, found = dict[int, int](), list[tuple[int, int, int]]()
    for commit in commits_of(bootstrap, group):
        if commit.offset < newest.get(commit.partition, 0):
            found.append((commit.partition, newest[commit.partition], commit.offset))
        newest[commit.partition] = commit.offset
    return found


def marks_of(bootstrap: str, group: str) -> list[HandOverMark]:
    """The marks of hand-overs in the commits of the group, in the order of the broker."""
    marks = (one.mark for one in commits_of(bootstrap, group))
    return [mark for mark in marks if mark is not None]


def commits_of(bootstrap: str, group: str) -> list[Commit]:
    """Each commit for the one topic of the group, in the order of the broker."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    commits = list[Commit]()
    # All of a group is in one of them.
    places = [TopicPartition(OFFSETS_TOPIC, number, 0) for number in range(OFFSETS_PARTITIONS)]
    try:
        left = {place.partition: _log_end(reader, place) for place in places}
        reader.assign(places)
        while any(left.values()):
            for message in reader.consume(100, 0.5):
                assert message.error() is None, message.error()
                commits += _commit(message.key(), message.value(), group)
                if int(message.offset() or 0) + 1 >= left[int(message.partition() or 0)]:
                    left[int(message.partition() or 0)] = 0
    finally:
        reader.close()
    return commits


def _log_end(reader: Consumer, place: TopicPartition) -> int:
    """The log end offset, once a broker that was started again leads the partition."""
    found = list[int]()

    def is_known() -> bool:
        try:
            found.append(int(reader.get_watermark_offsets(place, timeout=10)[1]))
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                raise
        return bool(found)

    wait_until(is_known, what=f"the log end of {place.topic}-{place.partition}")
    return found[0]


def _commit(key: bytes | None, value: bytes | None, group: str) -> list[Commit]:
    if key is None or value is None or record_type_of(key) not in OFFSET_COMMIT_TYPES:
        return []
    if group_id_of(key) != group:
        return []
    commit = decode_offset_commit_value(value)
    if commit is None:
        return []
    return [
        Commit(
            partition=decode_offset_commit_key(key).partition,
            offset=commit.committed_offset,
            at_ms=commit.commit_timestamp_ms or 0,
            mark=split(commit.metadata or "")[1],
        )
    ]


def commit_everywhere(
    bootstrap: str, topic: str, partitions: int, *, groups: int, offset_of: Callable[[int], int]
) -> int:
    """Let groups `group-000…` commit every partition of the topic, one request each.

    Args:
        bootstrap: Of the brokers.
        topic: That has so many partitions.
        partitions: See `topic`.
        groups: How many.
        offset_of: The offset to commit, by partition number.

    Returns:
        Number of commits.
    """
    offsets = [TopicPartition(topic, number, offset_of(number)) for number in range(partitions)]
    for group in range(groups):
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"group-{group:03}", "log_level": 0})
        try:
            wait_until(lambda c=consumer: _has_committed(c, offsets), what=f"a commit of group {group}")
        finally:
            consumer.close()
    return groups * partitions


def _has_committed(consumer: Consumer, offsets: list[TopicPartition]) -> bool:
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException:
        # Its coordinator may have moved a moment ago.
        return False
    return True
