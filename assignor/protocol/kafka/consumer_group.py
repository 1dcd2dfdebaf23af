"""Groups of the consumer protocol of KIP-848 as the offsets topic holds them: record types 3, 5 to 8 and 16.

    key      int16 type | group id string | [types 5, 7, 8 member id string] | [type 16 regular expression string]
    value    int16 version 0, then, in the compact form with tagged fields after every struct:
     3  group epoch int32
     5  instance id string? | rack id string? | client id string | client host string | topic names [string]
        | topic regex string? | rebalance timeout int32 | server assignor string? | tag 0: classic member?
     6  assignment epoch int32
     7  target [topic id uuid, partitions [int32]]
     8  member epoch int32 | previous epoch int32 | state int8 | assigned [as in 7] | pending revocation [as in 7]
    16  topics [string] | version int64 | timestamp int64

Tags that are not known are skipped by their size, and bytes after the last field are ignored. A null value is a
tombstone and is not decoded at all. Type 4, which brokers up to 4.0 wrote, says nothing about members.
Source: `ConsumerGroup*Key.json` and `ConsumerGroup*Value.json` of Kafka 4.x; KIP-848.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Any, TypeVar

from assignor.errors import DecodeError
from assignor.protocol.kafka.reader import Reader
from assignor.protocol.kafka.record_types import RecordType
from assignor.protocol.kafka.writer import Writer

TOPIC_ID_BYTES = 16

_VERSION = 0
_CLASSIC_TAG = 0
_PRESENT = 1
_LEAST_TOPIC_BYTES = TOPIC_ID_BYTES + 2
_LEAST_PROTOCOL_BYTES = 3

_Value = TypeVar("_Value")

TopicPartitions = tuple[tuple[bytes, tuple[int, ...]], ...]
"""Topic ids, 16 bytes each, with partition numbers, in the order of the record."""

NAMED_TYPES = (
    RecordType.CONSUMER_GROUP_MEMBER_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION,
)
"""Types whose key names a member, or a regular expression, of the group."""


@unique
class MemberState(IntEnum):
    """State of a member on its way to its target assignment, by Kafka's names."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """The member has to give up partitions, and has not said yet that it did."""
    UNRELEASED_PARTITIONS = 2
    """Partitions of its target are still owned by others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKey:
    """The subject of a record, from its key."""

    record_type: RecordType
    group_id: str
    name: str = ""
    """Member id (types 5, 7, 8) or regular expression (16); empty for the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMember:
    """The JoinGroup data of a member that still speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Names of assignors with the subscription for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMetadata:
    """A member and its subscription (type 5)."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str
    client_host: str
    topic_names: tuple[str, ...] = ()
    topic_regex: str | None = None
    """RE2 expression that the broker resolves; what matches is in a record of type 16."""
    rebalance_timeout_ms: int
    server_assignor: str | None = None
    """Assignor that the member asks for; None: any."""
    classic: ClassicMember | None = None
    """None for a member that uses `group.protocol=consumer`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentAssignment:
    """The current assignment of a member (type 8)."""

    member_epoch: int
    """Assignment epoch that the member has reached; -2 for a static member that is away for a moment."""
    previous_member_epoch: int
    state: int
    """A `MemberState`, or a number that this version does not know."""
    assigned: TopicPartitions = ()
    """Without those that it has to give up."""
    pending_revocation: TopicPartitions = ()
    """Partitions that it still owns, and has to give up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularExpression:
    """The topics that a regular expression of members matches, as the broker has found them (type 16)."""

    topics: tuple[str, ...]
    version: int
    """Version of the broker's metadata."""
    timestamp_ms: int


def decode_record_key(key: bytes) -> RecordKey:
    """The subject of a key of type 3 to 8, or 16.

    Raises:
        DecodeError: Another type, truncated, null or not UTF-8.
    """
    reader = Reader(key)
    number = reader.int16("record type")
    if number not in _TYPES:
        raise DecodeError(f"record type {number} is not a consumer group record", position=0)
    record_type = RecordType(number)
    group_id = reader.string("group id")
    name = reader.string("member id or regular expression") if record_type in NAMED_TYPES else ""
    return RecordKey(record_type=record_type, group_id=group_id, name=name)


def encode_record_key(key: RecordKey) -> bytes:
    """Key as brokers write it."""
    writer = Writer()
    writer.int16(key.record_type)
    writer.string(key.group_id)
    if key.record_type in NAMED_TYPES:
        writer.string(key.name)
    return writer.to_bytes()


def decode_group_epoch(value: bytes) -> int:
    """The group epoch in a value of type 3: it rises whenever members, subscriptions or topics change.

    Raises:
        DecodeError: Unknown version, truncated.
    """
    return _decoded(value, lambda reader: reader.int32("group epoch"))


def decode_assignment_epoch(value: bytes) -> int:
    """The epoch of the target assignment in a value of type 6: the group epoch that it was made for.

    Raises:
        DecodeError: Unknown version, truncated.
    """
    return _decoded(value, lambda reader: reader.int32("assignment epoch"))


def decode_member_metadata(value: bytes) -> MemberMetadata:
    """The member in a value of type 5.

    Raises:
        DecodeError: Unknown version, truncated, not UTF-8, null where null is not allowed.
    """
    reader = _opened(value)
    instance_id = reader.nullable_string("instance id")
    rack_id = reader.nullable_string("rack id")
    client_id = reader.string("client id")
    client_host = reader.string("client host")
    topic_names = _texts(reader, "subscribed topic names")
    topic_regex = reader.nullable_string("subscribed topic regex")
    rebalance_timeout_ms = reader.int32("rebalance timeout")
    server_assignor = reader.nullable_string("server assignor")
    tagged = reader.tagged_fields().get(_CLASSIC_TAG)
    return MemberMetadata(
        instance_id=instance_id,
        rack_id=rack_id,
        client_id=client_id,
        client_host=client_host,
        topic_names=topic_names,
        topic_regex=topic_regex,
        rebalance_timeout_ms=rebalance_timeout_ms,
        server_assignor=server_assignor,
        classic=None if tagged is None else _classic(tagged),
    )


def decode_target_assignment(value: bytes) -> TopicPartitions:
    """The target assignment in a value of type 7; raises as `decode_current_assignment` does."""
    return _decoded(value, lambda reader: _topic_partitions(reader, "target assignment"))


def decode_current_assignment(value: bytes) -> CurrentAssignment:
    """The current assignment in a value of type 8.

    Raises:
        DecodeError: Unknown version, truncated, null array, negative partition.
    """
    return _decoded(
        value,
        lambda reader: CurrentAssignment(
            member_epoch=reader.int32("member epoch"),
            previous_member_epoch=reader.int32("previous member epoch"),
            state=reader.int8("member state"),
            assigned=_topic_partitions(reader, "assigned partitions"),
            pending_revocation=_topic_partitions(reader, "partitions pending revocation"),
        ),
    )


def decode_regular_expression(value: bytes) -> RegularExpression:
    """The topics that match, of a value of type 16.

    Raises:
        DecodeError: Unknown version, truncated, not UTF-8, null array.
    """
    return _decoded(
        value,
        lambda reader: RegularExpression(
            topics=_texts(reader, "topics"),
            version=reader.int64("version"),
            timestamp_ms=reader.int64("timestamp"),
        ),
    )


DECODERS: Mapping[RecordType, Callable[[bytes], Any]] = {
    RecordType.CONSUMER_GROUP_METADATA: decode_group_epoch,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: decode_member_metadata,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: decode_assignment_epoch,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: decode_target_assignment,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: decode_current_assignment,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: decode_regular_expression,
}
"""By type of a record that a group is made of: what reads its value, and raises `DecodeError` where it cannot."""


def encode_group_epoch(epoch: int) -> bytes:
    """Value of type 3 without the hash of the topics."""
    return _encoded(lambda writer: writer.int32(epoch))


def encode_assignment_epoch(epoch: int) -> bytes:
    """Value of type 6 without its time."""
    return _encoded(lambda writer: writer.int32(epoch))


def encode_member_metadata(member: MemberMetadata) -> bytes:
    """Value of type 5."""
    writer = _begun()
    for text in (member.instance_id, member.rack_id, member.client_id, member.client_host):
        writer.string(text)
    _write_texts(writer, member.topic_names)
    writer.string(member.topic_regex)
    writer.int32(member.rebalance_timeout_ms)
    writer.string(member.server_assignor)
    writer.tagged_fields({} if member.classic is None else {_CLASSIC_TAG: _classic_bytes(member.classic)})
    return writer.to_bytes()


def encode_target_assignment(target: TopicPartitions) -> bytes:
    """Value of type 7."""
    return _encoded(lambda writer: _write_topic_partitions(writer, target))


def encode_current_assignment(current: CurrentAssignment) -> bytes:
    """Value of type 8 without the epochs of single partitions."""
    writer = _begun()
    writer.int32(current.member_epoch)
    writer.int32(current.previous_member_epoch)
    writer.int8(current.state)
    _write_topic_partitions(writer, current.assigned)
    _write_topic_partitions(writer, current.pending_revocation)
    writer.tagged_fields({})
    return writer.to_bytes()


def encode_regular_expression(resolved: RegularExpression) -> bytes:
    """Value of type 16."""
    writer = _begun()
    _write_texts(writer, resolved.topics)
    writer.int64(resolved.version)
    writer.int64(resolved.timestamp_ms)
    writer.tagged_fields({})
    return writer.to_bytes()


_TYPES = (
    RecordType.CONSUMER_GROUP_METADATA,
    RecordType.CONSUMER_GROUP_PARTITION_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
    *NAMED_TYPES,
)


def _opened(value: bytes) -> Reader:
    reader = Reader(value)
    version = reader.int16("version")
    if version != _VERSION:
        raise DecodeError(f"unknown version {version}", position=0)
    reader.compact = True
    return reader


def _decoded(value: bytes, read: Callable[[Reader], _Value]) -> _Value:
    reader = _opened(value)
    content = read(reader)
    reader.tagged_fields()
    return content


def _texts(reader: Reader, name: str) -> tuple[str, ...]:
    return reader.array(name, item_bytes=1, read=lambda: reader.string(name))


def _topic_partitions(reader: Reader, name: str) -> TopicPartitions:
    def one() -> tuple[bytes, tuple[int, ...]]:
        topic_id = reader.raw(TOPIC_ID_BYTES, "topic id")
        partitions = reader.int32_array("partitions")
        if any(number < 0 for number in partitions):
            raise reader.error(f"negative partition {min(partitions)}")
        reader.tagged_fields()
        return topic_id, partitions

    return reader.array(name, item_bytes=_LEAST_TOPIC_BYTES, read=one)


def _classic(tagged: bytes) -> ClassicMember | None:
    reader = Reader(tagged)
    reader.compact = True
    presence = reader.int8("classic member")
    # A struct that is null is one byte here: Kafka 4.2 writes it for each member of its own protocol.
    if presence != _PRESENT:
        if reader.remaining:
            raise reader.error(f"classic member: presence {presence}")
        return None

    def protocol() -> tuple[str, bytes]:
        read = reader.string("protocol"), reader.bytes_("metadata")
        reader.tagged_fields()
        return read

    session_timeout_ms = reader.int32("session timeout")
    protocols = reader.array("protocols", item_bytes=_LEAST_PROTOCOL_BYTES, read=protocol)
    reader.tagged_fields()
    return ClassicMember(session_timeout_ms=session_timeout_ms, protocols=protocols)


def _begun() -> Writer:
    writer = Writer()
    writer.int16(_VERSION)
    writer.compact = True
    return writer


def _encoded(write: Callable[[Writer], None]) -> bytes:
    writer = _begun()
    write(writer)
    writer.tagged_fields({})
    return writer.to_bytes()


def _write_texts(writer: Writer, texts: Iterable[str]) -> None:
    given = tuple(texts)
    writer.array_count(len(given))
    for text in given:
        writer.string(text)


def _write_topic_partitions(writer: Writer, topics: TopicPartitions) -> None:
    writer.array_count(len(topics))
    for topic_id, partitions in topics:
        writer.raw(topic_id)
        writer.int32_array(partitions)
        writer.tagged_fields({})


def _classic_bytes(classic: ClassicMember) -> bytes:
    writer = Writer()
    writer.compact = True
    writer.int8(_PRESENT)
    writer.int32(classic.session_timeout_ms)
    writer.array_count(len(classic.protocols))
    for name, metadata in classic.protocols:
        writer.string(name)
        writer.bytes_(metadata)
        writer.tagged_fields({})
    writer.tagged_fields({})
    return writer.to_bytes()
