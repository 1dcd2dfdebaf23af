"""Offset commits of `__consumer_offsets`, a whole Arrow batch at a time.

The vectorised path accepts a commit only if it is certainly good. All others go through the codecs of `offsets`, so
both paths agree on which records are bad and why.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, unique

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from assignor.errors import DecodeError
from assignor.protocol.kafka.offsets import (
    MAX_TIMESTAMP_MS,
    NO_TOPIC_ID,
    decode_offset_commit_key,
    decode_offset_commit_value,
)
from assignor.protocol.kafka.record_types import KNOWN_TYPES, OFFSET_COMMIT_TYPES, RecordType
from pipeline.decode.byte_column import Bools, ByteColumn, Int64s, as_text
from pipeline.decode.offset_fields import ValueFields, key_fields, record_types, value_fields


@unique
class Kind(IntEnum):
    """Kind of a decoded record."""

    COMMIT = 0
    TOMBSTONE = 1
    """A commit was deleted or has expired, or its offset is negative."""
    GROUP = 2
    """Group metadata (type 2); neither key nor value was looked at."""
    OTHER = 3
    """Types 3 to 23; neither key nor value was looked at."""
    UNKNOWN_TYPE = 4
    NULL_KEY = 5
    BAD = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetColumns:
    """One entry per record in each column."""

    kind: pa.Array
    """int8, a `Kind`, never null."""
    record_type: pa.Array
    """int16, null if the key is null or too short for a version."""
    group_id: pa.Array
    """string; like `topic` and `partition`, null but for COMMIT and TOMBSTONE."""
    topic: pa.Array
    """string"""
    partition: pa.Array
    """int32, >= 0"""
    committed_offset: pa.Array
    """int64, >= 0; null but for COMMIT."""
    leader_epoch: pa.Array
    """int32, >= 0; null if the commit has none."""
    commit_timestamp_ms: pa.Array
    """int64, from 1970 to 9999; null if the commit has no such time."""
    topic_id: pa.Array
    """binary, 16 bytes; null if the commit has no topic id."""
    reason: pa.Array
    """string, why the record is UNKNOWN_TYPE, NULL_KEY or BAD; null for all other kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One commit that the scalar codecs have decoded, or the reason why they could not."""

    kind: Kind
    group_id: str | None = None
    topic: str | None = None
    partition: int = -1
    committed_offset: int = -1
    leader_epoch: int | None = None
    commit_timestamp_ms: int | None = None
    topic_id: bytes | None = None
    reason: str | None = None


def decode_offset_commits(key: pa.Array, value: pa.Array) -> OffsetColumns:
    """The columns of a batch of records of any types; no byte sequence makes it raise.

    Args:
        key: Record keys as binary or large_binary.
        value: Record values, of the same length; null is a tombstone.

    Complexity: about a hundred array operations a batch, and one scalar decode for each commit that is not
        as brokers write it.
    """
    keys, values = ByteColumn(key), ByteColumn(value)
    record_type, typed = record_types(keys)
    committing = typed & np.isin(record_type, OFFSET_COMMIT_TYPES)
    of_key, of_value = key_fields(keys), value_fields(values)
    good = committing & of_key.good & (of_value.good | ~values.valid)
    raw_group_id, raw_topic = keys.cut(of_key.group_span, of_key.topic_span, where=good)
    (group_id, odd_group_id), (topic, odd_topic) = as_text(raw_group_id), as_text(raw_topic)
    # A name that may not be UTF-8 makes its row doubtful, not bad: the scalar codec decides that.
    good &= ~(odd_group_id | odd_topic)
    topic_id = _topic_ids(values, of_value, where=good)

    kind = _kinds(record_type, typed, keys.valid)
    kind[good] = np.where(values.valid[good], Kind.COMMIT, Kind.TOMBSTONE)
    # Doubtful is what might be a commit. Brokers write few such records, so this loop over records stays short.
    doubtful = ~good & (committing | (keys.valid & ~typed))
    rows = _decode_each(key.filter(pa.array(doubtful)), value.filter(pa.array(doubtful)))
    kind[doubtful] = [row.kind for row in rows]

    committed = kind == Kind.COMMIT
    named = committed | (kind == Kind.TOMBSTONE)
    partition = _merged(of_key.partition, doubtful, [row.partition for row in rows])
    offset = _merged(of_value.committed_offset, doubtful, [row.committed_offset for row in rows])
    epoch = _merged(of_value.leader_epoch, doubtful, [row.leader_epoch for row in rows])
    timestamp_ms = _merged(of_value.commit_timestamp_ms, doubtful, [row.commit_timestamp_ms for row in rows])
    # A time that no calendar has is null, as in the scalar codec: its offset counts all the same.
    known_time = (timestamp_ms >= 0) & (timestamp_ms <= MAX_TIMESTAMP_MS)
    return OffsetColumns(
        kind=pa.array(kind),
        record_type=_column(record_type, np.int16, typed),
        group_id=_merged_cells(group_id, doubtful, [row.group_id for row in rows]),
        topic=_merged_cells(topic, doubtful, [row.topic for row in rows]),
        partition=_column(partition, np.int32, named),
        committed_offset=_column(offset, np.int64, committed),
        leader_epoch=_column(epoch, np.int32, committed & (epoch >= 0)),
        commit_timestamp_ms=_column(timestamp_ms, np.int64, committed & known_time),
        topic_id=_merged_cells(topic_id, doubtful, [row.topic_id for row in rows]),
        reason=_reasons(kind, record_type, doubtful, [row.reason for row in rows]),
    )


def last_per_key(key: pa.Array, record_offset: npt.NDArray[np.int64]) -> Int64s:
    """Return the rows with the greatest record offset of their key, ascending; one row per distinct key.

    All records must come from one partition of the offsets topic, because offsets of two partitions have no order.
    Filter out BAD records first, or a bad record would hide the good one before it.

    Args:
        key: Record keys, compared as bytes. Rows with a null key are left out.
        record_offset: Offset of each record, in any order. The later of two equal ones wins.
    """
    # Arrow hashes the bytes of the keys once; from here on a key is a small integer.
    encoded = key.dictionary_encode()
    code = pc.fill_null(encoded.indices, -1).to_numpy()
    # Ranks instead of offsets: they lead back to their row, and of equal offsets the later row has the greater one.
    by_offset = np.argsort(record_offset, kind="stable")
    rank = np.empty(by_offset.size, np.int64)
    rank[by_offset] = np.arange(by_offset.size)
    newest = np.full(len(encoded.dictionary), -1, np.int64)
    keyed = code >= 0
    np.maximum.at(newest, code[keyed], rank[keyed])
    return np.sort(by_offset[newest])


def _kinds(record_type: Int64s, typed: Bools, valid: Bools) -> npt.NDArray[np.int8]:
    """Return the kind by the key's type; offset commits count as BAD until they prove good."""
    by_type = np.full(max(KNOWN_TYPES) + 2, Kind.UNKNOWN_TYPE, np.int8)
    by_type[list(KNOWN_TYPES)] = Kind.OTHER
    by_type[RecordType.GROUP_METADATA] = Kind.GROUP
    by_type[list(OFFSET_COMMIT_TYPES)] = Kind.BAD
    # Index -1 is the last cell, which no known type has.
    kind = by_type[np.clip(record_type, -1, by_type.size - 1)]
    kind[~typed] = Kind.BAD
    kind[~valid] = Kind.NULL_KEY
    return kind


def _topic_ids(values: ByteColumn, fields: ValueFields, *, where: Bools) -> pa.Array:
    (raw,) = values.cut(fields.topic_id_span, where=where & fields.has_topic_id)
    # The id is zero where the client named the topic by its name.
    ids = raw.cast(pa.binary())
    return pc.if_else(pc.equal(ids, NO_TOPIC_ID), pa.scalar(None, pa.binary()), ids)


def _decode_each(key: pa.Array, value: pa.Array) -> list[_Row]:
    return [_decode_one(*record) for record in zip(key.to_pylist(), value.to_pylist(), strict=True)]


def _decode_one(key: bytes, value: bytes | None) -> _Row:
    try:
        for_what = decode_offset_commit_key(key)
    except DecodeError as error:
        return _Row(kind=Kind.BAD, reason=f"key: {error}")
    try:
        commit = None if value is None else decode_offset_commit_value(value)
    except DecodeError as error:
        return _Row(kind=Kind.BAD, reason=f"value: {error}")
    return _Row(
        kind=Kind.TOMBSTONE if commit is None else Kind.COMMIT,
        group_id=for_what.group_id,
        topic=for_what.topic,
        partition=for_what.partition,
        committed_offset=-1 if commit is None else commit.committed_offset,
        leader_epoch=None if commit is None else commit.leader_epoch,
        commit_timestamp_ms=None if commit is None else commit.commit_timestamp_ms,
        topic_id=None if commit is None else commit.topic_id,
    )


def _merged(numbers: Int64s, where: Bools, others: Sequence[int | None]) -> Int64s:
    numbers[where] = [-1 if other is None else other for other in others]
    return numbers


def _merged_cells(cells: pa.Array, where: Bools, others: Sequence[str | bytes | None]) -> pa.Array:
    # The usual batch has no doubtful row, and replacing copies all the others.
    if not others:
        return cells
    return pc.replace_with_mask(cells, pa.array(where), pa.array(others, cells.type))


def _column(numbers: Int64s, form: type[np.signedinteger], known: Bools) -> pa.Array:
    return pa.array(numbers.astype(form), mask=None if known.all() else ~known)


def _reasons(
    kind: npt.NDArray[np.int8], record_type: Int64s, where: Bools, found: Sequence[str | None]
) -> pa.Array:
    """The reasons found by the scalar codecs, at `where`, and those that the kind alone gives."""
    no_key, unknown = kind == Kind.NULL_KEY, kind == Kind.UNKNOWN_TYPE
    # Merged in any order: a row has one kind, so no two of these masks meet.
    reasons = _merged_cells(pa.nulls(kind.size, pa.string()), where, found)
    reasons = _merged_cells(reasons, no_key, ["null key"] * int(np.count_nonzero(no_key)))
    types = [f"unknown record type {number}" for number in record_type[unknown]]
    return _merged_cells(reasons, unknown, types)
