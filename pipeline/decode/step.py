"""Decode: bytes of the offsets topic to commits, tombstones, group records and what could not be read.

One output row per thing found; which columns are filled depends on `row_kind`:

    commit, tombstone        group_id topic partition offsets_partition position [committed_offset … topic_id]
    group, group_tombstone   group_id group_type offsets_partition position [state … members]
    ack, orders              group_id position ack | orders (`control_messages`)
    read                     topic partition position leader_epoch error   (how far a partition was read)
    log_offset               topic topic_id partition log_start_offset log_end_offset isolation observed_at_ms error
                             leader_broker preferred_leader replicas in_sync_replicas
    listing                  error (null: the brokers' list of topics is complete) brokers
    bad                      topic partition offset timestamp key value kind reason   (`schemas.QUARANTINE`)
    count                    kind count

Records are decoded where they are read, a whole Arrow batch at a time, and each batch is collapsed to the
newest commit of each partition before it leaves the worker: records in, partitions out.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from assignor.model.arrays import Bools
from assignor.protocol.kafka.offsets import topic_id_text
from assignor.protocol.kafka.record_types import KNOWN_TYPES, RecordType
from pipeline.decode.bounded import Bounded
from pipeline.decode.control_messages import CONTROL_COLUMNS, ControlTopics, control_rows
from pipeline.decode.groups import GROUP_COLUMNS, HEADER_TYPES, group_rows
from pipeline.decode.offset_columns import Kind, OffsetColumns, decode_offset_commits, last_per_key
from pipeline.kafka.positions import PartitionKey, Position
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.name_filter import NameFilter

_PLAIN_COLUMNS = (
    ("row_kind", t.StringType()),
    ("kind", t.StringType()),
    ("group_id", t.StringType()),
    ("topic", t.StringType()),
    ("topic_id", t.StringType()),
    ("partition", t.IntegerType()),
    ("offsets_partition", t.IntegerType()),
    ("position", t.LongType()),
    ("committed_offset", t.LongType()),
    ("leader_epoch", t.IntegerType()),
    ("commit_timestamp_ms", t.LongType()),
    ("log_start_offset", t.LongType()),
    ("log_end_offset", t.LongType()),
    ("isolation", t.StringType()),
    ("observed_at_ms", t.LongType()),
    ("error", t.StringType()),
    ("leader_broker", t.IntegerType()),
    ("preferred_leader", t.IntegerType()),
    ("replicas", t.IntegerType()),
    ("in_sync_replicas", t.IntegerType()),
    ("brokers", t.IntegerType()),
    ("offset", t.LongType()),
    ("timestamp", t.TimestampType()),
    ("key", t.BinaryType()),
    ("value", t.BinaryType()),
    ("reason", t.StringType()),
    ("count", t.LongType()),
)
_DECODED = t.StructType(
    [*(t.StructField(name, kind) for name, kind in _PLAIN_COLUMNS), *GROUP_COLUMNS, *CONTROL_COLUMNS]
)
ARROW = to_arrow_schema(_DECODED)
"""The columns of decoded rows."""

_MOST_BAD_ROWS, _MOST_BAD_BYTES = 10_000, 8 * 2**20
"""What one task hands on of the records that cannot be read."""

# The tables hold the hash of this text. In another form of it the same filters would count as others, and every
# driver that is upgraded would read all topics again from their start.
_IDENTITY_FORM = (
    "Filters(topics_include={!r}, topics_exclude={!r}, groups_include={!r}, groups_exclude={!r}, "
    "talk=TalkTopics(cluster={!r}, acks={!r}, commands={!r}))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Whose commits are kept: regular expressions on the whole name; exclusion wins."""

    topics_include: tuple[str, ...]
    topics_exclude: tuple[str, ...]
    groups_include: tuple[str, ...]
    groups_exclude: tuple[str, ...]
    control_topics: ControlTopics

    @property
    def identity(self) -> str:
        """The same for the same filters: rows that were taken under others are not what these would have taken."""
        control = self.control_topics
        text = _IDENTITY_FORM.format(
            self.topics_include,
            self.topics_exclude,
            self.groups_include,
            self.groups_exclude,
            *(control.cluster, control.acks, control.commands),
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a span was read."""

    position: Position
    error: str | None
    """Why no further; None when it was read whole, or as far as its leader vouches for."""


@dataclass(slots=True, kw_only=True)
class Summary:
    """What a batch contained."""

    reached: dict[PartitionKey, Reached] = field(default_factory=dict)
    """By partition that was read."""
    counts: dict[str, int] = field(default_factory=dict)
    """Records by kind; record types without use here by Kafka's name."""
    is_listed: bool = False
    """Whether the brokers were asked for their topics at all."""
    listing_error: str | None = None
    brokers: int | None = None
    """Live ones; None when the brokers were not asked, or did not answer."""

    @property
    def group_records(self) -> int:
        """Group records and their tombstones."""
        return self.counts.get("group", 0)

    @property
    def acks(self) -> int:
        """Acknowledgements of followers."""
        return self.counts.get("ack", 0)

    @property
    def orders(self) -> int:
        """Orders of operators."""
        return self.counts.get("orders", 0)

    @property
    def quarantined(self) -> int:
        """Records that could not be read."""
        return self.counts.get("bad", 0)


def log_offset_rows(answers: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of `sources.log_offsets` as decoded rows; the one without a topic is of kind 'listing'."""
    row_kind = pc.if_else(pc.is_null(answers["topic"]), "listing", "log_offset")
    return _rows(None, row_kind=row_kind, **{name: answers[name] for name in answers.schema.names})


SUMMARISED = ("count", "listing", "read")
"""Kinds of rows that `summarise` takes account of."""


def summarise(rows: pa.Table) -> Summary:
    """What a batch contained, of its decoded rows; those that are not of the kinds `SUMMARISED` may be left out."""
    columns = [
        "row_kind",
        "kind",
        "count",
        "topic",
        "partition",
        "position",
        "leader_epoch",
        "error",
        "brokers",
    ]
    counts: Counter[str] = Counter()
    summary = Summary()
    told = rows.filter(pc.is_in(rows["row_kind"], value_set=pa.array(SUMMARISED)))
    for row in told.select(columns).to_pylist():
        if row["row_kind"] == "listing":
            summary.is_listed = True
            summary.listing_error = row["error"]
            summary.brokers = row["brokers"]
        elif row["row_kind"] == "read":
            reached = Reached(Position(row["position"], row["leader_epoch"]), row["error"])
            summary.reached[row["topic"], row["partition"]] = reached
        else:
            counts[row["kind"]] += row["count"]
    summary.counts = dict(sorted(counts.items()))
    return summary


class Decoder:
    """Decodes Arrow batches of raw records in a worker."""

    def __init__(self, filters: Filters) -> None:
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
            yield from self._bounded(_records(records, self._wants_topic, self._wants_group, counts))
        if messages.num_rows:
            found = _control_messages(messages, self._control_topics, self._wants_group, counts)
            yield from self._bounded(found)

    def _bounded(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            # All rows of one batch are of one kind.
            yield self._bad.taken(rows) if rows["row_kind"][0].as_py() == "bad" else rows


def counted(counts: Counter[str]) -> Iterator[pa.RecordBatch]:
    """Rows of kind 'count', if anything was counted."""
    if counts:
        kinds, numbers = zip(*sorted(counts.items()), strict=True)
        yield _rows("count", kind=pa.array(kinds), count=pa.array(numbers, pa.int64()))


def _records(
    batch: pa.RecordBatch,
    wants_topic: Callable[[str], bool],
    wants_group: Callable[[str], bool],
    counts: Counter[str],
) -> Iterator[pa.RecordBatch]:
    columns = decode_offset_commits(batch["key"], batch["value"])
    kind = columns.kind.to_numpy()
    _count(kind, columns, counts)
    wanted = _wanted(columns.group_id, wants_group) & _wanted(columns.topic, wants_topic)
    for code, row_kind in ((Kind.COMMIT, "commit"), (Kind.TOMBSTONE, "tombstone")):
        counts[row_kind] += int(np.count_nonzero(kind == code))
    commits = np.flatnonzero(np.isin(kind, (Kind.COMMIT, Kind.TOMBSTONE)) & wanted)
    if commits.size:
        yield _commits(batch, columns, commits)
    is_bad = np.isin(kind, (Kind.UNKNOWN_TYPE, Kind.BAD))
    bad = [
        _bad(
            batch,
            np.flatnonzero(is_bad),
            np.where(kind == Kind.BAD, "offset_commit", "unknown_type")[is_bad],
            columns.reason,
        )
    ]
    headers = np.isin(columns.record_type.fill_null(-1).to_numpy(), HEADER_TYPES)
    groups = group_rows(batch.filter(pa.array(headers)), wants_group)
    counts["group"] += len(groups.good)
    counts["group_superseded"] += groups.superseded
    counts["bad"] += int(np.count_nonzero(is_bad)) + len(groups.bad)
    yield from (rows_of(rows) for rows in (groups.good, groups.bad) if rows)
    yield from (rows for rows in bad if rows.num_rows)


def _control_messages(
    batch: pa.RecordBatch, topics: ControlTopics, wants_group: Callable[[str], bool], counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    good, bad = control_rows(batch, topics, wants_group)
    counts.update(row["row_kind"] for row in (*good, *bad))
    yield from (rows_of(rows) for rows in (good, bad) if rows)


def _count(kind: np.ndarray, columns: OffsetColumns, counts: Counter[str]) -> None:
    """Count the record types that nothing is done with, so that none is dropped without a trace."""
    others = columns.record_type.filter(pa.array((kind == Kind.OTHER) | (kind == Kind.UNKNOWN_TYPE)))
    for pair in others.value_counts().to_pylist():
        number = pair["values"]
        name = RecordType(number).name.lower() if number in KNOWN_TYPES else f"unknown_type_{number}"
        counts[name] += pair["counts"]
    counts["null_key"] += int(np.count_nonzero(kind == Kind.NULL_KEY))


def _commits(batch: pa.RecordBatch, columns: OffsetColumns, rows: np.ndarray) -> pa.RecordBatch:
    position = batch["offset"].to_numpy()
    newest = rows[last_per_key(batch["key"].take(pa.array(rows)), position[rows])]
    index = pa.array(newest)
    is_tombstone = columns.kind.take(index).to_numpy() == Kind.TOMBSTONE
    return _rows(
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
    return _rows("bad", kind=pa.array(kinds.astype(str), pa.string()), reason=reason.take(index), **raw)


def _wanted(names: pa.Array, wants: Callable[[str], bool]) -> Bools:
    """Which rows have a name that passes; each distinct name is asked about once. Null passes."""
    encoded = names.dictionary_encode()
    passes: Bools = np.array([*(wants(name) for name in encoded.dictionary.to_pylist()), True])
    wanted: Bools = passes[encoded.indices.fill_null(len(passes) - 1).to_numpy()]
    return wanted


def _rows(of_kind: str | None, **columns: pa.Array) -> pa.RecordBatch:
    """Rows of `ARROW` with these columns, all others null."""
    size = len(next(iter(columns.values())))
    if of_kind is not None:
        columns["row_kind"] = pa.array([of_kind] * size, pa.string())
    arrays = [
        columns[name].cast(kind) if name in columns else pa.nulls(size, kind)
        for name, kind in zip(ARROW.names, ARROW.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def rows_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Decoded rows; what a row does not name is null."""
    return pa.RecordBatch.from_pylist(rows, schema=ARROW)
