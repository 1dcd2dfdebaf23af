"""Measure: lag, age, rates and status of what was folded.

The rules are in its sibling modules; this module only converts columns to their input and back.
"""

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from pipeline.arrow_columns import moment
from pipeline.lag.lags import measured_lags
from pipeline.lag.logs import measured_logs
from pipeline.lag.settings import LagSettings, TopicSettings
from pipeline.row_keys import PARTITION_KEY, codes, looked_up, struct, taken
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import PARTITION_LAG, TOPIC_OFFSETS

_Settings = TypeVar("_Settings", TopicSettings, LagSettings)
_Measure = Callable[[pa.RecordBatch, _Settings], dict[str, pa.Array]]

_LOG = (
    *("log_start_offset", "log_end_offset", "isolation", "observed_at"),
    *("arrival_rate", "samples", "deleted_at", "topic_id", "readable_offset", "last_stable_offset"),
    "error",
)
LOG_COLUMNS = (*PARTITION_KEY, *_LOG, "topic_id_at")
"""Columns of `schemas.TOPIC_OFFSETS` that `lag_of` needs."""


def _less_cluster(schema: StructType) -> pa.Schema:
    return pa.schema([field for field in arrow_schema(schema) if field.name != "cluster"])


_TOPICS, _LAGS = _less_cluster(TOPIC_OFFSETS), _less_cluster(PARTITION_LAG)


def topic_offsets_of(folded: pa.Table, settings: TopicSettings) -> pa.Table:
    """Return `schemas.TOPIC_OFFSETS` of `fold_topic_offsets`: answers replace the stored values.

    Without an answer the previous offsets and their time stay, and `error` gives the reason. Partitions that the
    brokers, asked by name, no longer have get `deleted_at`; a re-created topic starts from scratch with the first
    answer.
    """
    return _measured(measured_logs, settings, _TOPICS, folded)


def lag_of(folded: pa.Table, topic_offsets: pa.Table, settings: LagSettings, *, left: pa.Table) -> pa.Table:
    """`schemas.PARTITION_LAG` of `fold_commits` and the log offsets stored by this batch.

    A partition that a member claims, that no commit names, and that no broker knows, is left out.

    Args:
        folded: Result of `fold_commits`.
        topic_offsets: `schemas.TOPIC_OFFSETS`.
        settings: What the measures depend on in addition.
        left: `owners.left_groups`.
    """
    wanted, known = codes(PARTITION_KEY, folded, topic_offsets)
    is_answered = pc.and_(
        pc.is_null(topic_offsets["error"]),
        pc.fill_null(pc.equal(topic_offsets["topic_id_at"], topic_offsets["observed_at"]), False),
    )
    answered = pc.if_else(is_answered, topic_offsets["topic_id"], pa.scalar(None, pa.string()))
    logs = topic_offsets.select(_LOG).append_column("answered_topic_id", answered)
    log = taken(struct(logs, logs.column_names), looked_up(wanted, known))
    is_there = pc.and_(pc.is_valid(log), pc.is_null(pc.struct_field(log, "deleted_at")))
    is_row = pc.or_(pc.is_valid(folded["committed_offset"]), is_there)
    folded = folded.append_column("log", log)
    left_at = taken(left["group_position"].combine_chunks(), looked_up(*codes(("group_id",), folded, left)))
    folded = folded.append_column("left_position", left_at)
    return _measured(measured_lags, settings, _LAGS, folded.filter(is_row))


def _measured(
    measure: _Measure[_Settings], settings: _Settings, schema: pa.Schema, folded: pa.Table
) -> pa.Table:
    """The columns of `schema` of the rows, with time and number of the batch."""
    measured = [
        measure(rows, settings)
        | {
            "updated_at": pa.repeat(moment(settings.at_ms), rows.num_rows),
            "batch_id": pa.repeat(settings.batch_id, rows.num_rows),
        }
        for rows in folded.combine_chunks().to_batches()
    ]
    return pa.Table.from_pydict(
        {
            one.name: pa.chunked_array([columns[one.name].cast(one.type) for columns in measured], one.type)
            for one in schema
        },
        schema=schema,
    )
