"""Positions of the fields of offset commits, for a whole batch: the vectorised half of `offset_columns`.

Positions are computed before they are checked. A read outside its row gives a meaningless value, which is harmless:
the end of the last field is compared with the end of the row, and negative lengths are rejected, so a good row has
every field within its own bytes. The layouts are those of `offsets`.
"""

from dataclasses import dataclass

import numpy as np

from assignor.protocol.kafka.offsets import NEWEST_VERSION, TOPIC_ID_BYTES, TOPIC_ID_TAG
from pipeline.decode.byte_column import Bools, ByteColumn, Int64s

_CONTINUES = 0x80
# Of a single tagged field that is short: how many there are, its tag, its size.
_TAG_HEADER_BYTES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFields:
    """Fields of keys of type 0 and 1, one entry per row, meaningless where not `good`."""

    good: Bools
    group_span: tuple[Int64s, Int64s]
    topic_span: tuple[Int64s, Int64s]
    partition: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFields:
    """Fields of values of version 0 to 4, one entry per row, meaningless where not `good`."""

    good: Bools
    committed_offset: Int64s
    leader_epoch: Int64s
    """-1 if the version has none."""
    commit_timestamp_ms: Int64s
    topic_id_span: tuple[Int64s, Int64s]
    has_topic_id: Bools
    """True if the span holds a topic id, which may be zero."""


def record_types(keys: ByteColumn) -> tuple[Int64s, Bools]:
    """The type in front of each key, and whether there is one."""
    return keys.integers(keys.start, ">i2"), keys.valid & (keys.end - keys.start >= np.dtype(">i2").itemsize)


def key_fields(keys: ByteColumn) -> KeyFields:
    """The fields of each key, read as if it were of type 0 or 1; `good` does not look at the type."""
    # int16 type | int16 length, group | int16 length, topic | int32 partition
    group_at = keys.start + 4
    group_end = group_at + keys.integers(group_at - 2, ">i2")
    topic_at = group_end + 2
    topic_end = topic_at + keys.integers(group_end, ">i2")
    partition = keys.integers(topic_end, ">i4")
    inside = (group_end >= group_at) & (topic_end >= topic_at) & (topic_end + 4 <= keys.end)
    return KeyFields(
        good=keys.valid & inside & (partition >= 0),
        group_span=(group_at, group_end),
        topic_span=(topic_at, topic_end),
        partition=partition,
    )


def value_fields(values: ByteColumn) -> ValueFields:
    """The fields of each value.

    Not `good` although a scalar decoder may accept them: a metadata length of more than two varint bytes,
    and tagged fields other than none or one topic id. Brokers write neither.
    """
    # int16 version | int64 offset | int32 leader epoch, from 3 on | metadata | int64 time | int64 expiry, in 1 only
    version = values.integers(values.start, ">i2")
    committed_offset = values.integers(values.start + 2, ">i8")
    has_epoch = version >= 3  # noqa: PLR2004 - the version that brought it
    size_at = values.start + 10 + 4 * has_epoch
    flexible = version == NEWEST_VERSION
    metadata_at, metadata_end = _metadata_span(values, size_at, flexible)
    tail_at = metadata_end + 8 + 8 * (version == 1)
    good = values.valid & (version >= 0) & (version <= NEWEST_VERSION) & (committed_offset >= 0)
    good &= (metadata_end >= metadata_at) & (tail_at <= values.end)
    # A batch without flexible versions, as all of an older cluster are, does not pay for their tags.
    has_topic_id = np.zeros_like(good)
    if flexible.any():
        is_usual, is_tagged = _usual_tags(values, tail_at)
        good &= ~flexible | is_usual
        has_topic_id = good & flexible & is_tagged
    id_at = tail_at + _TAG_HEADER_BYTES
    return ValueFields(
        good=good,
        committed_offset=committed_offset,
        leader_epoch=np.where(has_epoch, values.integers(values.start + 10, ">i4"), -1),
        commit_timestamp_ms=values.integers(metadata_end, ">i8"),
        topic_id_span=(id_at, id_at + TOPIC_ID_BYTES),
        has_topic_id=has_topic_id,
    )


def _metadata_span(values: ByteColumn, size_at: Int64s, flexible: Bools) -> tuple[Int64s, Int64s]:
    """Start and end of the metadata; the end is before the start where the length is null or not readable."""
    metadata_at = size_at + 2
    size = values.integers(size_at, ">i2")
    if flexible.any():
        low, high = values.integers(size_at, ">u1"), values.integers(size_at + 1, ">u1")
        long = low >= _CONTINUES
        # Compact lengths are one more than the length, so 0 is null: -1 here, which is refused like any length below 0.
        compact = np.where(long, (low & ~_CONTINUES) | (high << 7), low) - 1
        compact[long & (high >= _CONTINUES)] = -1
        size = np.where(flexible, compact, size)
        metadata_at = np.where(flexible & ~long, size_at + 1, metadata_at)
    return metadata_at, metadata_at + size


def _usual_tags(values: ByteColumn, tail_at: Int64s) -> tuple[Bools, Bools]:
    """Where there is no tagged field or one topic id, and where it is the id."""
    count, tag, size = (values.integers(tail_at + place, ">u1") for place in range(_TAG_HEADER_BYTES))
    is_tagged = (count == 1) & (tag == TOPIC_ID_TAG) & (size == TOPIC_ID_BYTES)
    tags_end = np.where(count == 0, tail_at + 1, tail_at + _TAG_HEADER_BYTES + TOPIC_ID_BYTES)
    inside: Bools = ((count == 0) | is_tagged) & (tags_end <= values.end)
    return inside, is_tagged
