"""Measure: lag, age, rates and status of what was folded.

The rules are those of the modules beside it; this module only brings columns to them and back, one Arrow batch of
Spark's at a time, or a whole table on the driver.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from pipeline.lag.columns import from_millis
from pipeline.lag.lags import LagSettings, measured_lags
from pipeline.lag.logs import TopicSettings, measured_logs
from pipeline.row_keys import PARTITION_KEY, codes, looked_up, struct, taken
from pipeline.tables.schemas import PARTITION_LAG, TOPIC_OFFSETS

_Settings = TypeVar("_Settings", TopicSettings, LagSettings)
_Measure = Callable[[pa.RecordBatch, _Settings], dict[str, pa.Array]]

_LOG = (
    *("log_start_offset", "log_end_offset", "isolation", "observed_at"),
    *("arrival_rate", "samples", "deleted_at", "topic_id"),
)


def _less_cluster(schema: t.StructType) -> t.StructType:
    # Spark writes literals into the code that it generates, so numbers that change with every batch, time and number
    # of the batch above all, come through Arrow. The cluster is the same in all.
    return t.StructType([field for field in schema if field.name != "cluster"])


_TOPICS, _LAGS = _less_cluster(TOPIC_OFFSETS), _less_cluster(PARTITION_LAG)


def measure_topic_offsets(folded: DataFrame, settings: TopicSettings) -> DataFrame:
    """`schemas.TOPIC_OFFSETS` of `fold.step.fold_topic_offsets`: what was answered replaces what was known.

    Without an answer the previous offsets and their time stay, and `error` says why. What the brokers, asked by
    name, no longer have gets `deleted_at`; a topic that is there again starts from scratch with the first answer.
    """
    return folded.mapInArrow(partial(_each, measured_logs, settings, _TOPICS), schema=_TOPICS)


def topic_offsets_of(folded: pa.Table, settings: TopicSettings) -> pa.Table:
    """As `measure_topic_offsets`, of `fold.on_driver.fold_topic_offsets`."""
    return _whole(measured_logs, settings, _TOPICS, folded)


def measure_lag(folded: DataFrame, topic_offsets: DataFrame, settings: LagSettings) -> DataFrame:
    """`schemas.PARTITION_LAG` of `fold.step.fold_commits` and the log offsets stored by this batch.

    A partition that a member claims, that no commit names, and that no broker knows, is left out.
    """
    is_answered = F.col("error").isNull() & (F.col("topic_id_at") == F.col("observed_at"))
    answered = F.when(is_answered, F.col("topic_id")).alias("answered_topic_id")
    logs = topic_offsets.select("topic", "partition", F.struct(*_LOG, answered).alias("log"))
    known = folded.join(logs, on=["topic", "partition"], how="left").where(
        F.col("committed_offset").isNotNull() | F.col("log.deleted_at").isNull() & F.col("log").isNotNull()
    )
    return known.mapInArrow(partial(_each, measured_lags, settings, _LAGS), schema=_LAGS)


def lag_of(folded: pa.Table, topic_offsets: pa.Table, settings: LagSettings) -> pa.Table:
    """As `measure_lag`, of `fold.on_driver.fold_commits`."""
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
    return _whole(measured_lags, settings, _LAGS, folded.append_column("log", log).filter(is_row))


def _each(
    measure: _Measure[_Settings],
    settings: _Settings,
    schema: t.StructType,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    return (_measured(measure, settings, schema, batch) for batch in batches if batch.num_rows)


def _whole(
    measure: _Measure[_Settings], settings: _Settings, schema: t.StructType, folded: pa.Table
) -> pa.Table:
    batches = folded.combine_chunks().to_batches()
    return pa.Table.from_batches(
        _each(measure, settings, schema, iter(batches)), schema=to_arrow_schema(schema)
    )


def _measured(
    measure: _Measure[_Settings], settings: _Settings, schema: t.StructType, batch: pa.RecordBatch
) -> pa.RecordBatch:
    columns: Mapping[str, pa.Array] = {
        **measure(batch, settings),
        "updated_at": from_millis(np.full(batch.num_rows, settings.at_ms)),
        "batch_id": pa.array(np.full(batch.num_rows, settings.batch_id)),
    }
    arrow = to_arrow_schema(schema)
    return pa.RecordBatch.from_arrays([columns[field.name].cast(field.type) for field in arrow], schema=arrow)
