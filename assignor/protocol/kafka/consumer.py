"""The protocol that consumers embed into group metadata: subscription and assignment, version 0 to 3.

    subscription   int16 version | topics [string] | user data bytes? | [v1+ owned [topic string
                   | partitions [int32]]] | [v2+ generation int32] | [v3+ rack string?]
    assignment     int16 version | assigned [topic string | partitions [int32]] | user data bytes?

No version is flexible. A later version only appends, so it is read as version 3 and its tail ignored.
Members are not trusted: partitions may be negative, doubled, foreign, of topics that do not exist.
Source: Kafka's `ConsumerProtocolSubscription.json`, `ConsumerProtocolAssignment.json`, `ConsumerProtocol`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from assignor.model.java_order import java_order
from assignor.protocol.kafka.reader import Reader
from assignor.protocol.kafka.writer import Writer

TopicPartitions: TypeAlias = Mapping[str, tuple[int, ...]]
"""Partitions by topic, in the order in which they were written."""

NEWEST_VERSION = 3
NO_GENERATION = -1

_FIRST_OWNED_VERSION = 1
_FIRST_GENERATION_VERSION = 2
_FIRST_RACK_VERSION = 3
_LEAST_STRING_BYTES = 2
_LEAST_TOPIC_BYTES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a member wants and what it says it holds."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    """Opaque bytes of the member's assignor."""
    owned: TopicPartitions = field(default_factory=dict)
    """Claimed partitions; empty before version 1 and for eager members, who have revoked all by then."""
    generation: int = NO_GENERATION
    """Generation of the claim, -1 when not reported."""
    rack: str | None = None
    """Rack id; an empty one means none, as librdkafka writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What the leader gave to a member."""

    partitions: TopicPartitions
    user_data: bytes | None = None


def decode_subscription(data: bytes) -> Subscription:
    """The subscription in the metadata of a member.

    Fields that a version appended may be missing altogether: some clients announce version 1 and write
    version 0. Source: Sarama tolerates it in `ConsumerGroupMemberMetadata`.

    Raises:
        DecodeError: Negative version, truncated, null or not UTF-8 topics.
    """
    reader = Reader(data)
    version = _read_version(reader)
    topics = reader.array("topics", item_bytes=_LEAST_STRING_BYTES, read=lambda: reader.string("topic"))
    user_data = reader.nullable_bytes("user data")
    owned: TopicPartitions = {}
    generation = NO_GENERATION
    rack = None
    if version >= _FIRST_OWNED_VERSION and reader.remaining:
        owned = read_topic_partitions(reader)
    if version >= _FIRST_GENERATION_VERSION and reader.remaining:
        generation = max(reader.int32("generation"), NO_GENERATION)
    if version >= _FIRST_RACK_VERSION and reader.remaining:
        rack = reader.nullable_string("rack") or None
    return Subscription(topics=topics, user_data=user_data, owned=owned, generation=generation, rack=rack)


def encode_subscription(subscription: Subscription, *, version: int = NEWEST_VERSION) -> bytes:
    """Metadata in the given version, topics and partitions sorted as Java clients write them."""
    writer = Writer()
    writer.int16(version)
    writer.array_count(len(subscription.topics))
    for topic in sorted(subscription.topics, key=java_order):
        writer.string(topic)
    writer.bytes_(subscription.user_data)
    if version >= _FIRST_OWNED_VERSION:
        owned = subscription.owned
        write_topic_partitions(
            writer, {topic: tuple(sorted(owned[topic])) for topic in sorted(owned, key=java_order)}
        )
    if version >= _FIRST_GENERATION_VERSION:
        writer.int32(subscription.generation)
    if version >= _FIRST_RACK_VERSION:
        writer.string(subscription.rack)
    return writer.to_bytes()


def decode_assignment(data: bytes) -> Assignment:
    """The assignment of a member; no bytes at all are an assignment of nothing.

    Raises:
        DecodeError: Negative version, truncated, null or not UTF-8 topics.
    """
    if not data:
        return Assignment(partitions={})
    reader = Reader(data)
    _read_version(reader)
    partitions = read_topic_partitions(reader)
    return Assignment(partitions=partitions, user_data=reader.nullable_bytes("user data"))


def encode_assignment(assignment: Assignment, *, version: int = NEWEST_VERSION) -> bytes:
    """Assignment in the given version, topics and partitions in their own order."""
    writer = Writer()
    writer.int16(version)
    write_topic_partitions(writer, assignment.partitions)
    writer.bytes_(assignment.user_data)
    return writer.to_bytes()


def read_topic_partitions(reader: Reader) -> TopicPartitions:
    """Array of {topic string, partitions [int32]}; the partitions of a topic named twice are joined."""
    pairs = reader.array(
        "partitions by topic",
        item_bytes=_LEAST_TOPIC_BYTES,
        read=lambda: (reader.string("topic"), reader.int32_array("partitions")),
    )
    joined: dict[str, list[int]] = {}
    for topic, partitions in pairs:
        joined.setdefault(topic, []).extend(partitions)
    return {topic: tuple(partitions) for topic, partitions in joined.items()}


def write_topic_partitions(writer: Writer, by_topic: TopicPartitions) -> None:
    """Array of {topic string, partitions [int32]}, in the order of the mapping."""
    writer.array_count(len(by_topic))
    for topic, partitions in by_topic.items():
        writer.string(topic)
        writer.int32_array(partitions)


def _read_version(reader: Reader) -> int:
    version = reader.int16("version")
    if version < 0:
        raise reader.error(f"negative version {version}")
    return version
