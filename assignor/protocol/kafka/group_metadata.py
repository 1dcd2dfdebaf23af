"""Metadata of a classic group: the value of a record of type 2, version 0 to 4.

    int16 version | protocol type string | generation int32 | protocol string? | leader string?
    | [v2+ state timestamp int64] | members [ member id string | [v3+ group instance id string?]
    | client id string | client host string | [v1+ rebalance timeout int32] | session timeout int32
    | subscription bytes | assignment bytes ]

Version 4 is flexible, with tagged fields after each member and at the end; brokers up to 4.3 write 3.
Bytes after the last field are ignored. Source: Kafka's `GroupMetadataValue.json`; KIP-345 (instance id).
"""

from dataclasses import dataclass

from assignor.errors import DecodeError
from assignor.protocol.kafka.reader import Reader
from assignor.protocol.kafka.writer import Writer

NEWEST_VERSION = 4

_FIRST_REBALANCE_TIMEOUT_VERSION = 1
_FIRST_STATE_TIMESTAMP_VERSION = 2
_FIRST_INSTANCE_ID_VERSION = 3
_FIRST_FLEXIBLE_VERSION = 4
_WRITTEN_VERSION = 3
_LEAST_MEMBER_BYTES = 15
_ABSENT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member as the coordinator stored it when the leader's assignment arrived."""

    member_id: str
    group_instance_id: str | None = None
    """Static identity, or None for a dynamic member."""
    client_id: str
    client_host: str
    rebalance_timeout_ms: int = _ABSENT
    """-1 in version 0, which has none."""
    session_timeout_ms: int
    subscription: bytes
    """What the member sent for the chosen protocol; opaque unless the protocol type is "consumer"."""
    assignment: bytes
    """What the leader sent for the member; no bytes at all mean no partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """A classic group at the end of its last rebalance."""

    protocol_type: str
    """"consumer", "connect", ... or empty for a group that only commits offsets."""
    generation: int
    protocol: str | None
    """Name of the assignor, or None for a group without members."""
    leader: str | None
    """Member id of the leader."""
    state_timestamp_ms: int = _ABSENT
    """Coordinator's clock when the group entered its state, -1 when the version has none."""
    members: tuple[GroupMember, ...]


def decode_group_metadata(value: bytes) -> GroupMetadata:
    """The group in a value of version 0 to 4; the bytes of its members are left as they are.

    Raises:
        DecodeError: Unknown version, truncated, not UTF-8, null where null is not allowed.
    """
    reader = Reader(value)
    version = reader.int16("version")
    if not 0 <= version <= NEWEST_VERSION:
        raise DecodeError(f"unknown version {version}", position=0)
    reader.compact = version >= _FIRST_FLEXIBLE_VERSION
    protocol_type = reader.string("protocol type")
    generation = reader.int32("generation")
    protocol = reader.nullable_string("protocol")
    leader = reader.nullable_string("leader")
    timed = version >= _FIRST_STATE_TIMESTAMP_VERSION
    state_timestamp_ms = reader.int64("state timestamp") if timed else _ABSENT
    members = reader.array(
        "members", item_bytes=_LEAST_MEMBER_BYTES, read=lambda: _read_member(reader, version)
    )
    reader.tagged_fields()
    return GroupMetadata(
        protocol_type=protocol_type,
        generation=generation,
        protocol=protocol,
        leader=leader,
        state_timestamp_ms=state_timestamp_ms,
        members=members,
    )


def encode_group_metadata(group: GroupMetadata, *, version: int = _WRITTEN_VERSION) -> bytes:
    """Value in the given version; fields that it does not have are left out."""
    writer = Writer()
    writer.int16(version)
    writer.compact = version >= _FIRST_FLEXIBLE_VERSION
    writer.string(group.protocol_type)
    writer.int32(group.generation)
    writer.string(group.protocol)
    writer.string(group.leader)
    if version >= _FIRST_STATE_TIMESTAMP_VERSION:
        writer.int64(group.state_timestamp_ms)
    writer.array_count(len(group.members))
    for member in group.members:
        _write_member(writer, member, version)
    writer.tagged_fields({})
    return writer.to_bytes()


def _read_member(reader: Reader, version: int) -> GroupMember:
    member_id = reader.string("member id")
    static = version >= _FIRST_INSTANCE_ID_VERSION
    group_instance_id = reader.nullable_string("group instance id") if static else None
    client_id = reader.string("client id")
    client_host = reader.string("client host")
    own_timeout = version >= _FIRST_REBALANCE_TIMEOUT_VERSION
    member = GroupMember(
        member_id=member_id,
        group_instance_id=group_instance_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=reader.int32("rebalance timeout") if own_timeout else _ABSENT,
        session_timeout_ms=reader.int32("session timeout"),
        subscription=reader.bytes_("subscription"),
        assignment=reader.bytes_("assignment"),
    )
    reader.tagged_fields()
    return member


def _write_member(writer: Writer, member: GroupMember, version: int) -> None:
    writer.string(member.member_id)
    if version >= _FIRST_INSTANCE_ID_VERSION:
        writer.string(member.group_instance_id)
    writer.string(member.client_id)
    writer.string(member.client_host)
    if version >= _FIRST_REBALANCE_TIMEOUT_VERSION:
        writer.int32(member.rebalance_timeout_ms)
    writer.int32(member.session_timeout_ms)
    writer.bytes_(member.subscription)
    writer.bytes_(member.assignment)
    writer.tagged_fields({})
