"""Decode: bytes of the offsets topic to commits, tombstones, group records and quarantine rows.

Records are decoded where they are read, a whole Arrow batch at a time, and each batch is collapsed to the
newest commit of each partition before it leaves the worker: records in, partitions out.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools
from assignor.protocol.kafka.offsets import topic_id_text
from assignor.protocol.kafka.record_types import KNOWN_TYPES, RecordType
from pipeline.decode.bounded import Bounded
from pipeline.decode.control_messages import control_rows
from pipeline.decode.filters import ControlTopics, Filters
from pipeline.decode.groups import CONSUMER_GROUP_TYPES, HEADER_TYPES, group_rows
from pipeline.decode.offset_columns import Kind, OffsetColumns, decode_offset_commits, last_per_key
from pipeline.decode.rows import filled, rows_of
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.name_filter import NameFilter

_MOST_BAD_ROWS, _MOST_BAD_BYTES = 10_000, 8 * 2**20
"""Limit of unreadable records that one task returns."""


class Decoder:
    """Decodes Arrow batches of raw records in a worker."""

    def __init__(self, filters: Filters, *, collapses: bool = True) -> None:
        """Nothing is decoded.

        Args:
            filters: Groups and topics to keep.
            collapses: Keep only the newest commit of a key in one batch; otherwise keep every commit.
        """
        self._collapses = collapses
        self._control_topics = filters.control_topics
        self._wants_topic = NameFilter(filters.topics_include, filters.topics_exclude).admits
        self._wants_group = NameFilter(filters.groups_include, filters.groups_exclude).admits
        # The driver collects them, and who writes rubbish into a topic without end is not to fill its memory.
        self._bad = Bounded(rows=_MOST_BAD_ROWS, bytes_=_MOST_BAD_BYTES)

    def decode(self, batch: pa.RecordBatch, counts: Counter[str]) -> Iterator[pa.RecordBatch]:
        """Decoded rows of records with topic, partition, offset, timestamp, key and value; adds to `counts`."""
        is_offset = pc.equal(batch["topic"], OFFSETS_TOPIC)
        records, messages = batch.filter(is_offset), batch.filter(pc.invert(is_offset))
        if records.num_rows:
            yield from self._bounded(self._records_of(records, counts))
        if messages.num_rows:
            found = _control_messages(messages, self._control_topics, self._wants_group, counts)
            yield from self._bounded(found)

    def _records_of(self, records: pa.RecordBatch, counts: Counter[str]) -> Iterator[pa.RecordBatch]:
        wants = self._wants_topic, self._wants_group
        return _records(records, *wants, counts, collapses=self._collapses)

    def _bounded(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            # All rows of one batch are of one kind.
            yield self._bad.taken(rows) if rows["row_kind"][0].as_py() == "bad" else rows


def counted(counts: Counter[str]) -> Iterator[pa.RecordBatch]:
    """Rows of kind 'count', if anything was counted."""
    if counts:
        kinds, numbers = zip(*sorted(counts.items()), strict=True)
        yield filled("count", kind=pa.array(kinds), count=pa.array(numbers, pa.int64()))


def _records(
    batch: pa.RecordBatch,
    wants_topic: Callable[[str], bool],
    wants_group: Callable[[str], bool],
    counts: Counter[str],
    *,
    collapses: bool,
) -> Iterator[pa.RecordBatch]:
    columns = decode_offset_commits(batch["key"], batch["value"])
    kind = columns.kind.to_numpy()
    _count(kind, columns, counts)
    wanted = _wanted(columns.group_id, wants_group) & _wanted(columns.topic, wants_topic)
    for code, row_kind in ((Kind.COMMIT, "commit"), (Kind.TOMBSTONE, "tombstone")):
        counts[row_kind] += int(np.count_nonzero(kind == code))
    commits = np.flatnonzero(np.isin(kind, (Kind.COMMIT, Kind.TOMBSTONE)) & wanted)
    if commits.size:
        yield _commits(batch, columns, _newest(batch, commits) if collapses else commits)
    is_bad = np.isin(kind, (Kind.UNKNOWN_TYPE, Kind.BAD))
    bad = [
        _bad(
            batch,
            np.flatnonzero(is_bad),
            np.where(kind == Kind.BAD, "offset_commit", "unknown_type")[is_bad],
            columns.reason,
        )
    ]
    counts["bad"] += int(np.count_nonzero(is_bad))
    record_type = columns.record_type.fill_null(-1).to_numpy()
    for types in (HEADER_TYPES, CONSUMER_GROUP_TYPES):
        groups = group_rows(batch.filter(pa.array(np.isin(record_type, types))), wants_group)
        counts["group"] += len(groups.good)
        counts["group_superseded"] += groups.superseded
        counts["bad"] += len(groups.bad)
        yield from (rows_of(rows) for rows in (groups.good, groups.bad) if rows)
    yield from (rows for rows in bad if rows.num_rows)


def _control_messages(
    batch: pa.RecordBatch, topics: ControlTopics, wants_group: Callable[[str], bool], counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    good, bad = control_rows(batch, topics, wants_group)
    counts.update(row["row_kind"] for row in (*good, *bad))
    acks, orders = ([row for row in good if row["row_kind"] == kind] for kind in ("ack", "orders"))
    yield from (rows_of(rows) for rows in (acks, orders, bad) if rows)


def _count(kind: np.ndarray, columns: OffsetColumns, counts: Counter[str]) -> None:
    """Count the record types that nothing is done with, so that none is dropped without a trace."""
    others = columns.record_type.filter(pa.array((kind == Kind.OTHER) | (kind == Kind.UNKNOWN_TYPE)))
    for pair in others.value_counts().to_pylist():
        number = pair["values"]
        name = RecordType(number).name.lower() if number in KNOWN_TYPES else f"unknown_type_{number}"
        counts[name] += pair["counts"]
    counts["null_key"] += int(np.count_nonzero(kind == Kind.NULL_KEY))


def _newest(batch: pa.RecordBatch, commits: np.ndarray) -> np.ndarray:
    """The commit of each partition after which the batch has no other one."""
    position = batch["offset"].to_numpy()
    newest: np.ndarray = commits[last_per_key(batch["key"].take(pa.array(commits)), position[commits])]
    return newest


def _commits(batch: pa.RecordBatch, columns: OffsetColumns, rows: np.ndarray) -> pa.RecordBatch:
    index = pa.array(rows)
    is_tombstone = columns.kind.take(index).to_numpy() == Kind.TOMBSTONE
    return filled(
        None,
        row_kind=pa.array(np.where(is_tombstone, "tombstone", "commit")),
        offsets_partition=batch["partition"].take(index),
        position=batch["offset"].take(index),
        topic_id=_id_texts(columns.topic_id.take(index)),
        **{
            name: getattr(columns, name).take(index)
            for name in (
                "group_id",
                "topic",
                "partition",
                "committed_offset",
                "leader_epoch",
                "commit_timestamp_ms",
            )
        },
    )


def _id_texts(topic_ids: pa.Array) -> pa.Array:
    encoded = topic_ids.dictionary_encode()
    texts = pa.array([topic_id_text(one) for one in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)


def _bad(batch: pa.RecordBatch, rows: np.ndarray, kinds: np.ndarray, reason: pa.Array) -> pa.RecordBatch:
    index = pa.array(rows)
    raw = {
        name: batch[name].take(index)
        for name in ("topic", "partition", "offset", "timestamp", "key", "value")
    }
    return filled("bad", kind=pa.array(kinds.astype(str), pa.string()), reason=reason.take(index), **raw)


def _wanted(names: pa.Array, wants: Callable[[str], bool]) -> Bools:
    """Which rows have a name that passes; each distinct name is asked about once. Null passes."""
    encoded = names.dictionary_encode()
    passes: Bools = np.array([*(wants(name) for name in encoded.dictionary.to_pylist()), True])
    wanted: Bools = passes[encoded.indices.fill_null(len(passes) - 1).to_numpy()]
    return wanted
