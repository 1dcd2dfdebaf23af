"""Decode: the common row format of everything that a batch reads.

One row per thing found; which columns are filled depends on `row_kind`:

    commit, tombstone        group_id topic partition offsets_partition position [committed_offset … topic_id]
    group, group_tombstone   group_id group_type offsets_partition position [state … members]
                             (a coordinator's answer has no record: no offsets_partition, no position)
    group_record, group_record_tombstone
                             group_id record_type record_key offsets_partition position written_at_ms value error
    ack, orders              group_id position ack | orders (`control_messages`)
    read                     topic partition position leader_epoch error   (how far a partition was read)
    log_offset               topic topic_id partition log_start_offset log_end_offset last_stable_offset isolation
                             observed_at_ms error
                             leader_broker preferred_leader replicas in_sync_replicas
    listing                  error (null: the brokers' list of topics is complete) brokers
    group_listing            error (null: all brokers have listed their groups)
    listed                   group_id   (a group that some broker lists)
    asked                    group_id error   (null: its coordinator has said what the group is and has committed)
    bad                      topic partition offset timestamp key value kind reason   (`schemas.QUARANTINE`)
    count                    kind count
    intake                   reason   (the offset of the batch, as JSON)
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from pipeline.decode.control_messages import CONTROL_COLUMNS
from pipeline.decode.groups import GROUP_COLUMNS
from pipeline.tables.arrow import arrow_schema

_PLAIN_COLUMNS = (
    ("row_kind", t.StringType()),
    ("kind", t.StringType()),
    ("group_id", t.StringType()),
    ("topic", t.StringType()),
    ("topic_id", t.StringType()),
    ("partition", t.IntegerType()),
    ("offsets_partition", t.IntegerType()),
    ("position", t.LongType()),
    ("record_type", t.IntegerType()),
    ("record_key", t.StringType()),
    ("written_at_ms", t.LongType()),
    ("committed_offset", t.LongType()),
    ("leader_epoch", t.IntegerType()),
    ("commit_timestamp_ms", t.LongType()),
    ("log_start_offset", t.LongType()),
    ("log_end_offset", t.LongType()),
    ("last_stable_offset", t.LongType()),
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
DECODED = t.StructType(
    [*(t.StructField(name, kind) for name, kind in _PLAIN_COLUMNS), *GROUP_COLUMNS, *CONTROL_COLUMNS]
)
"""The columns of decoded rows, for Spark."""
ARROW = arrow_schema(DECODED)
"""The same for Arrow."""


def filled(of_kind: str | None, **columns: pa.Array) -> pa.RecordBatch:
    """Return rows of `ARROW` with these columns filled and all others null.

    Args:
        of_kind: Kind of all rows; None if `row_kind` is among the columns.
        columns: By name.
    """
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


def log_offset_rows(answers: pa.RecordBatch) -> pa.RecordBatch:
    """Convert rows of `sources.log_offsets` to decoded rows; the row without a topic becomes kind 'listing'."""
    row_kind = pc.if_else(pc.is_null(answers["topic"]), "listing", "log_offset")
    return filled(None, row_kind=row_kind, **{name: answers[name] for name in answers.schema.names})
