"""Offset commits of `__consumer_offsets`, one record at a time.

    key      int16 type 0 or 1 | group string | topic string | partition int32
    value    int16 version | offset int64 | [v3+ leader epoch int32] | metadata string
             | commit timestamp int64 | [v1 expire timestamp int64] | [v4 tagged fields, tag 0 topic id]

Version 4 is flexible, the others are not; all five live side by side in one topic. Bytes after the last
field are ignored, as later versions only append. A null value is a tombstone and is not decoded at all.
Source: Kafka's `OffsetCommitKey.json` and `OffsetCommitValue.json`; KIP-320 for the epoch.
"""

import base64
from dataclasses import dataclass

from assignor.errors import DecodeError
from assignor.protocol.kafka.reader import Reader
from assignor.protocol.kafka.record_types import KNOWN_TYPES, OFFSET_COMMIT_TYPES, RecordType
from assignor.protocol.kafka.writer import Writer

MAX_TIMESTAMP_MS = 253_402_300_799_999
"""Last millisecond of the year 9999, the last one that Spark, Delta and Python can all hold."""

NEWEST_VERSION = 4
TOPIC_ID_TAG = 0
TOPIC_ID_BYTES = 16
NO_TOPIC_ID = bytes(TOPIC_ID_BYTES)
"""Kafka's zero id, which says no more than a field that is not there."""

_EXPIRE_VERSION = 1
_FIRST_EPOCH_VERSION = 3
_FIRST_FLEXIBLE_VERSION = 4
_ABSENT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitKey:
    """What a commit is for."""

    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitValue:
    """What was committed."""

    committed_offset: int
    """Next offset the group will read, >= 0."""
    leader_epoch: int | None = None
    """Epoch of the partition's leader when the group read, or None when it was not reported."""
    metadata: str = ""
    """Free text of the client. Bytes that are not UTF-8 show as U+FFFD, as they do in Kafka."""
    commit_timestamp_ms: int | None
    """Clock of the coordinator, or None when it is no time between 1970 and 9999."""
    expire_timestamp_ms: int | None = None
    """Set only by version 1 with an explicit retention."""
    topic_id: bytes | None = None
    """16 bytes of the topic that the client named by its id (version 4), or None: it named it by its name."""


def record_type_of(key: bytes) -> int:
    """The type in front of a key, which may be one that `RecordType` does not know.

    Raises:
        DecodeError: Less than two bytes.
    """
    return Reader(key).int16("record type")


def group_id_of(key: bytes) -> str:
    """The group id in a key of any known type: it is the first field of each.

    Raises:
        DecodeError: Unknown type, truncated, null or not UTF-8.
    """
    reader = Reader(key)
    record_type = reader.int16("record type")
    if record_type not in KNOWN_TYPES:
        raise DecodeError(f"unknown record type {record_type}", position=0)
    return reader.string("group id")


def encode_group_metadata_key(group_id: str) -> bytes:
    """Key of the group metadata record (type 2)."""
    writer = Writer()
    writer.int16(RecordType.GROUP_METADATA)
    writer.string(group_id)
    return writer.to_bytes()


def decode_offset_commit_key(key: bytes) -> OffsetCommitKey:
    """Group, topic and partition of a key of type 0 or 1.

    Raises:
        DecodeError: Another type, truncated, null or not UTF-8, negative partition.
    """
    reader = Reader(key)
    record_type = reader.int16("record type")
    if record_type not in OFFSET_COMMIT_TYPES:
        raise DecodeError(f"record type {record_type} is not an offset commit", position=0)
    group_id = reader.string("group id")
    topic = reader.string("topic")
    partition = reader.int32("partition")
    if partition < 0:
        raise reader.error(f"negative partition {partition}")
    return OffsetCommitKey(group_id=group_id, topic=topic, partition=partition)


def encode_offset_commit_key(key: OffsetCommitKey) -> bytes:
    """Key of type 1, as brokers write it."""
    writer = Writer()
    writer.int16(RecordType.OFFSET_COMMIT)
    writer.string(key.group_id)
    writer.string(key.topic)
    writer.int32(key.partition)
    return writer.to_bytes()


def decode_offset_commit_value(value: bytes) -> OffsetCommitValue | None:
    """The commit in a value of version 0 to 4; None if its offset is negative.

    Coordinators accept a negative offset, and from then on they answer that the group has no commit.

    Raises:
        DecodeError: Unknown version, truncated, null metadata, topic id of a wrong size.
    """
    reader = Reader(value)
    version = reader.int16("version")
    if not 0 <= version <= NEWEST_VERSION:
        raise DecodeError(f"unknown version {version}", position=0)
    reader.compact = version >= _FIRST_FLEXIBLE_VERSION
    committed_offset = reader.int64("offset")
    epoch = reader.int32("leader epoch") if version >= _FIRST_EPOCH_VERSION else _ABSENT
    metadata = reader.raw_string("metadata")
    timestamp_ms = reader.int64("commit timestamp")
    expire_ms = reader.int64("expire timestamp") if version == _EXPIRE_VERSION else _ABSENT
    topic_id = _topic_id(reader)
    if committed_offset < 0:
        return None
    return OffsetCommitValue(
        committed_offset=committed_offset,
        leader_epoch=epoch if epoch >= 0 else None,
        metadata=metadata.decode(errors="replace"),
        commit_timestamp_ms=_known_time(timestamp_ms),
        expire_timestamp_ms=_known_time(expire_ms),
        topic_id=topic_id,
    )


def topic_id_text(topic_id: bytes) -> str:
    """The id as Kafka writes it: base 64 in the alphabet for URLs, without padding."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def encode_offset_commit_value(value: OffsetCommitValue, *, version: int = NEWEST_VERSION) -> bytes:
    """Value in the given version; fields that it does not have are left out."""
    writer = Writer()
    writer.int16(version)
    writer.compact = version >= _FIRST_FLEXIBLE_VERSION
    writer.int64(value.committed_offset)
    if version >= _FIRST_EPOCH_VERSION:
        writer.int32(_or_absent(value.leader_epoch))
    writer.string(value.metadata)
    writer.int64(_or_absent(value.commit_timestamp_ms))
    if version == _EXPIRE_VERSION:
        writer.int64(_or_absent(value.expire_timestamp_ms))
    writer.tagged_fields({} if value.topic_id is None else {TOPIC_ID_TAG: value.topic_id})
    return writer.to_bytes()


def _topic_id(reader: Reader) -> bytes | None:
    topic_id = reader.tagged_fields().get(TOPIC_ID_TAG)
    if topic_id is not None and len(topic_id) != TOPIC_ID_BYTES:
        raise reader.error(f"topic id of {len(topic_id)} bytes, not {TOPIC_ID_BYTES}")
    return None if topic_id == NO_TOPIC_ID else topic_id


def _known_time(timestamp_ms: int) -> int | None:
    return timestamp_ms if 0 <= timestamp_ms <= MAX_TIMESTAMP_MS else None


def _or_absent(number: int | None) -> int:
    return _ABSENT if number is None else number
