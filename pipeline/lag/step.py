"""Measure: lag, age, rates and status of what was folded, one Arrow batch at a time.

The rules are those of the modules beside it; this module only brings columns to them and back.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.lag import commit_window, samples
from pipeline.lag.age import lag_age
from pipeline.lag.columns import bools, floats, from_floats, from_int64s, from_millis, int64s, millis
from pipeline.lag.lag import UNKNOWN, difference, lag, raw_lag
from pipeline.lag.rates import arrival_rate, drain_rate
from pipeline.lag.status import STATUS_NAMES, Offsets, judge
from pipeline.tables.schemas import PARTITION_LAG, TOPIC_OFFSETS

# Columns that Spark adds afterwards. Numbers that change with every batch are not among them: Spark writes
# literals into the code that it generates, and would compile and warm up that code for every batch again.
_BY_SPARK = frozenset({"cluster", "history_at", "history_hash"})

# A row says something new when one of these does.
_HISTORY_KEY = ("committed_offset", "log_end_offset", "status", "member_id")

_NOT_LISTED = "missing from the brokers' list, though asked for by name it is not gone"


def _without_spark_columns(schema: t.StructType) -> t.StructType:
    return t.StructType([field for field in schema if field.name not in _BY_SPARK])


_TOPICS = _without_spark_columns(TOPIC_OFFSETS)
_LAGS = _without_spark_columns(PARTITION_LAG)
_TOPICS_ARROW = to_arrow_schema(_TOPICS)
_LAGS_WITH_TURN = t.StructType([*_LAGS, PARTITION_LAG["history_at"], PARTITION_LAG["history_hash"]])
_LAGS_WITH_TURN_ARROW = to_arrow_schema(_LAGS_WITH_TURN)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """What the measures of a partition's log depend on, beside its row."""

    at_ms: int
    """Clock of the batch."""
    batch_id: int
    listing_error: str | None
    """Why the brokers' list of topics is not complete."""
    half_life_ms: int
    remaining: Mapping[str, int] = field(default_factory=dict)
    """By topic: how many partitions it has, as asked for by name; what is beyond them, and not observed, is gone."""
    unconfirmed: Mapping[str, str] = field(default_factory=dict)
    """By topic that is not listed any more: why it is not known to be gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LagSettings:
    """What the measures of a group's partition depend on, beside its row."""

    at_ms: int
    batch_id: int
    behind: tuple[int, ...]
    """Partitions of the offsets topic whose groups are provisional."""
    half_life_ms: int
    allowed_lag: int
    history_interval_ms: int
    history_max_gap_ms: int


def measure_topic_offsets(folded: DataFrame, settings: TopicSettings) -> DataFrame:
    """`schemas.TOPIC_OFFSETS` of `fold.step.fold_topic_offsets`: what was answered replaces what was known.

    Without an answer the previous offsets and their time stay, and `error` says why. What the brokers, asked by
    name, no longer have gets `deleted_at`; a topic that is there again starts from scratch with the first answer.
    """
    return folded.mapInArrow(partial(_each, partial(_topics, settings=settings)), schema=_TOPICS)


def measure_lag(folded: DataFrame, topic_offsets: DataFrame, settings: LagSettings) -> DataFrame:
    """`schemas.PARTITION_LAG` of `fold.step.fold_commits` and the log offsets stored by this batch.

    A partition that a member claims, that no commit names, and that no broker knows, is left out.
    """
    logs = topic_offsets.select(
        "topic",
        "partition",
        F.struct(
            "log_start_offset",
            "log_end_offset",
            "isolation",
            "observed_at",
            "arrival_rate",
            "samples",
            "deleted_at",
            "topic_id",
            F.when(
                F.col("error").isNull() & (F.col("topic_id_at") == F.col("observed_at")), F.col("topic_id")
            ).alias("answered_topic_id"),
        ).alias("log"),
    )
    known = folded.join(logs, on=["topic", "partition"], how="left").where(
        F.col("committed_offset").isNotNull() | F.col("log.deleted_at").isNull() & F.col("log").isNotNull()
    )
    measured = known.select(*known.columns, "old.history_at", "old.history_hash").mapInArrow(
        partial(_each, partial(_lags, settings=settings)),
        schema=_LAGS_WITH_TURN,
    )
    return _with_history_turn(measured, settings)


def _with_history_turn(measured: DataFrame, settings: LagSettings) -> DataFrame:
    """`history_at` becomes the batch's time where a history row is due."""
    elapsed_ms = F.unix_millis("updated_at") - F.unix_millis("history_at")
    says = F.xxhash64(*_HISTORY_KEY)
    is_due = (
        F.col("history_at").isNull()
        | (elapsed_ms >= settings.history_max_gap_ms)
        | ((elapsed_ms >= settings.history_interval_ms) & (says != F.col("history_hash")))
    )
    return (
        measured.withColumn("is_due", is_due)
        .withColumn("history_hash", F.when(F.col("is_due"), says).otherwise(F.col("history_hash")))
        .withColumn("history_at", F.when(F.col("is_due"), F.col("updated_at")).otherwise(F.col("history_at")))
    )


def _each(
    work: Callable[[pa.RecordBatch], pa.RecordBatch], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return (work(batch) for batch in batches if batch.num_rows)


def _topics(batch: pa.RecordBatch, settings: TopicSettings) -> pa.RecordBatch:
    old, new = batch["old"], batch["new"]
    known = samples.from_arrow(_field(old, "samples"))
    old_start, old_end = int64s(_field(old, "log_start_offset")), int64s(_field(old, "log_end_offset"))
    old_at = millis(_field(old, "observed_at"))
    end, observed_ms = int64s(_field(new, "log_end_offset")), int64s(_field(new, "observed_at_ms"))
    answered = end != UNKNOWN
    # A topic that was deleted and made again has another history under the same name.
    is_reborn = answered & (_is_set(_field(old, "deleted_at")) | _has_other_id(old, new))
    fresh = samples.append(_emptied(known, is_reborn), np.where(answered, observed_ms, UNKNOWN), end)
    previous = np.where(is_reborn, np.nan, floats(_field(old, "arrival_rate")))
    grown = np.where(is_reborn, UNKNOWN, difference(end, old_end))
    rate = arrival_rate(previous, grown, difference(observed_ms, old_at), settings.half_life_ms)
    is_gone, unanswered = _absent(batch, settings)
    # Until its new log is known a topic stays deleted: the old offsets under the old name would lie.
    was_deleted_ms = millis(_field(old, "deleted_at"))
    deleted_ms = np.where(is_gone, _or(was_deleted_ms, settings.at_ms), was_deleted_ms)
    deleted_ms = np.where(answered, UNKNOWN, deleted_ms)
    columns = {
        "topic": batch["topic"],
        "partition": batch["partition"],
        "log_start_offset": from_int64s(
            np.where(answered, int64s(_field(new, "log_start_offset")), old_start)
        ),
        "log_end_offset": from_int64s(np.where(answered, end, old_end)),
        "isolation": pc.if_else(pa.array(answered), _field(new, "isolation"), _field(old, "isolation")),
        "observed_at": from_millis(np.where(answered, observed_ms, old_at)),
        "arrival_rate": from_floats(np.where(answered, rate, previous)),
        "samples": samples.to_arrow(fresh),
        "error": pc.if_else(pa.array(_is_set(new)), _field(new, "error"), unanswered),
        "deleted_at": from_millis(deleted_ms),
        "topic_id": _topic_id(old, new, answered, is_reborn),
        "topic_id_at": from_millis(
            np.where(
                answered & _is_set(_field(new, "topic_id")), observed_ms, millis(_field(old, "topic_id_at"))
            )
        ),
        **_of_the_batch(len(deleted_ms), settings),
    }
    return _batch(columns, _TOPICS_ARROW)


def _has_other_id(old: pa.StructArray, new: pa.StructArray) -> Bools:
    """Where both topic ids are known and differ."""
    return _differ(_field(old, "topic_id"), _field(new, "topic_id"))


def _differ(ids: pa.Array, others: pa.Array) -> Bools:
    return bools(pc.not_equal(ids, others))


def _topic_id(old: pa.StructArray, new: pa.StructArray, answered: Bools, is_reborn: Bools) -> pa.Array:
    """Whose offsets are kept: without an id in the answer still the old topic's, unless that was deleted."""
    known, given = _field(old, "topic_id"), _field(new, "topic_id")
    kept = pc.if_else(pa.array(is_reborn), given, pc.coalesce(given, known))
    return pc.if_else(pa.array(answered), kept, known)


def _absent(batch: pa.RecordBatch, settings: TopicSettings) -> tuple[Bools, pa.Array]:
    """Which partitions are gone for good, and why the others that nobody observed were not."""
    missing = np.flatnonzero(~_is_set(batch["new"]))
    was_deleted = _is_set(_field(batch["old"], "deleted_at"))
    is_gone = np.zeros(batch.num_rows, dtype=bool)
    why: list[str | None] = [None] * batch.num_rows
    index = pa.array(missing)
    keys = zip(
        batch["topic"].take(index).to_pylist(), batch["partition"].take(index).to_pylist(), strict=True
    )
    for row, (topic, partition) in zip(missing.tolist(), keys, strict=True):
        is_gone[row] = partition >= settings.remaining.get(topic, partition + 1)
        why[row] = settings.unconfirmed.get(topic) or settings.listing_error
        if why[row] is None and not is_gone[row] and not was_deleted[row]:
            why[row] = _NOT_LISTED
    return is_gone, pa.array(why, pa.string())


def _lags(batch: pa.RecordBatch, settings: LagSettings) -> pa.RecordBatch:
    old, log = batch["old"], batch["log"]
    # A topic of which nothing is known is not one that is gone: this user may not be allowed to describe it.
    is_deleted = _is_set(_field(log, "deleted_at"))
    exists = _is_set(log) & ~is_deleted
    committed = int64s(batch["committed_offset"])
    comparable = exists & ~_is_of_another_topic(batch)
    start = np.where(comparable, int64s(_field(log, "log_start_offset")), UNKNOWN)
    end = np.where(comparable, int64s(_field(log, "log_end_offset")), UNKNOWN)
    ring = samples.from_arrow(_field(log, "samples"))
    records = lag(committed, start, end)
    age = lag_age(ring, committed=committed, log_start=start, lag=records, now_ms=settings.at_ms)
    committed_ms = millis(batch["commit_timestamp"])
    topic_id = _commit_topic_id(batch)
    # What was read late came in at other times than it was committed, and offsets of another topic are other
    # offsets: no statement on speed, or on what the group did before.
    is_apart = bools(batch["is_reread"]) | _differ(topic_id, _field(old, "commit_topic_id"))
    window = commit_window.append_commit(
        commit_window.emptied(commit_window.from_arrow(_field(old, "recent_commits")), is_apart),
        committed=committed,
        commit_timestamp_ms=_or(committed_ms, settings.at_ms),
        lag=records,
        is_new=bools(batch["has_new_commit"]),
    )
    codes = judge(
        window,
        ring,
        Offsets(committed, start, end),
        topic_exists=~is_deleted,
        now_ms=settings.at_ms,
        allowed_lag=settings.allowed_lag,
    )
    columns = {
        **{name: batch[name] for name in _LAGS.names if name in batch.schema.names},
        **{name: _field(batch["owner"], name) for name in _OWNER},
        "commit_topic_id": topic_id,
        "log_start_offset": from_int64s(start),
        "log_end_offset": from_int64s(end),
        "isolation": _field(log, "isolation"),
        "log_observed_at": _field(log, "observed_at"),
        "lag": from_int64s(records),
        "raw_lag": from_int64s(raw_lag(committed, end)),
        "lag_seconds": from_floats(age.seconds),
        "lag_seconds_is_lower_bound": pa.array(age.is_lower_bound),
        "arrival_rate": _field(log, "arrival_rate"),
        "drain_rate": from_floats(_drained(old, committed, is_apart, settings)),
        "status": pa.array(STATUS_NAMES).take(pa.array(codes)),
        "assigned": pa.array(_is_set(batch["owner"])),
        "provisional": pa.array(_is_provisional(int64s(batch["offsets_partition"]), settings.behind)),
        "recent_commits": commit_window.to_arrow(window),
        "history_at": batch["history_at"],
        "history_hash": batch["history_hash"],
        **_of_the_batch(len(committed), settings),
    }
    return _batch(columns, _LAGS_WITH_TURN_ARROW)


def _drained(old: pa.StructArray, committed: Int64s, is_apart: Bools, settings: LagSettings) -> Floats:
    """Records/s that the groups commit, less what says nothing of their speed."""
    is_silent = is_apart | bools(_field(old, "provisional"))
    committed_since = difference(committed, int64s(_field(old, "committed_offset")))
    return drain_rate(
        floats(_field(old, "drain_rate")),
        np.where(is_silent, UNKNOWN, committed_since),
        difference(np.full(len(committed), settings.at_ms), millis(_field(old, "updated_at"))),
        settings.half_life_ms,
    )


def _is_of_another_topic(batch: pa.RecordBatch) -> Bools:
    """Where the commit was made in another topic of that name than the one whose log offsets are known.

    A commit without an id that is new is one of the topic that the row was about, until the next batch: it may have
    been made just before the topic was deleted.
    """
    ids = pc.coalesce(batch["commit_topic_id"], _field(batch["old"], "commit_topic_id"))
    return _is_set(batch["committed_offset"]) & _differ(ids, _field(batch["log"], "topic_id"))


def _commit_topic_id(batch: pa.RecordBatch) -> pa.Array:
    """The topic that the commit was made in, or, when the record does not say, the one that was there after it.

    Log offsets are asked when it is settled which commits are read. So a commit is of none of the topics that take
    this one's place later.
    """
    after = _field(batch["log"], "answered_topic_id")
    ids = pc.coalesce(batch["commit_topic_id"], after)
    return pc.if_else(pa.array(_is_set(batch["committed_offset"])), ids, pa.scalar(None, pa.string()))


_OWNER = ("member_id", "group_instance_id", "client_id", "client_host", "generation")


def _of_the_batch(rows: int, settings: TopicSettings | LagSettings) -> dict[str, pa.Array]:
    return {
        "updated_at": from_millis(np.full(rows, settings.at_ms)),
        "batch_id": pa.array(np.full(rows, settings.batch_id)),
    }


def _is_provisional(offsets_partition: Int64s, behind: tuple[int, ...]) -> Bools:
    is_provisional: Bools = np.isin(offsets_partition, behind)
    if behind:
        is_provisional |= offsets_partition == UNKNOWN
    return is_provisional


def _field(structs: pa.StructArray, name: str) -> pa.Array:
    """A field of a struct column, null where the struct is."""
    return pc.struct_field(structs, name)


def _is_set(column: pa.Array) -> Bools:
    is_set: Bools = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return is_set


def _or(values: Int64s, otherwise: int) -> Int64s:
    return np.where(values == UNKNOWN, otherwise, values)


def _emptied(known: samples.Samples, where: Bools) -> samples.Samples:
    return samples.Samples(
        observed_at_ms=np.where(where[:, None], UNKNOWN, known.observed_at_ms),
        log_end=np.where(where[:, None], UNKNOWN, known.log_end),
        count=np.where(where, 0, known.count),
    )


def _batch(columns: dict[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [columns[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
