"""Plan: each group's partitions and members to one decision, on the executors.

A group is one Arrow table of partitions and one of a single row with everything else; the decision is
`pipeline.planning.decide.decide`, and this module only brings tables to it and back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from assignor.protocol.migration import Migration
from pipeline.config.model import GuardsConfig, PlanConfig
from pipeline.planning import reasons
from pipeline.planning.decide import decide
from pipeline.planning.facts import Rules
from pipeline.planning.guards import Guards
from pipeline.planning.memory import PlanMemory
from pipeline.planning.rows.facts_of_rows import group_facts, partition_facts, published
from pipeline.planning.rows.row_of_decision import to_row
from pipeline.planning.state import from_json
from pipeline.planning.values import Decision, Published, Verdict
from pipeline.tables.schemas import PLAN_STATE

_RATES = t.ArrayType(
    t.StructType(
        [
            t.StructField("identity", t.StringType()),
            t.StructField("rate", t.DoubleType()),
            t.StructField("shown_rate", t.DoubleType()),
            t.StructField("shown_at", t.TimestampType()),
            t.StructField("seen_at", t.TimestampType()),
        ]
    )
)
_LATER = {"cluster", "recorded_at"}
_ROW = t.StructType(
    [*(field for field in PLAN_STATE if field.name not in _LATER), t.StructField("rates", _RATES)]
)
_ARROW = to_arrow_schema(_ROW)

_DECIDED = (
    "group_id string, last_epoch long, last_target string, last_base string, last_valid_ms long, "
    "last_state string"
)
_GROUP = ("group_type", "state", "protocol_type", "assignor", "generation", "members", "offsets_partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """What decisions depend on, beside the tables."""

    cluster: str
    config: PlanConfig
    max_record_bytes: int
    at_ms: int
    """Clock of the batch: when it began."""
    now_ms: int
    """When it decides: plans are valid from then on, however long the batch took until here."""
    batch_id: int
    behind: tuple[int, ...]
    """Partitions of the offsets topic whose groups are provisional."""
    provisional_reason: str | None
    held: str | None = None
    """Why no group may have a plan now; None when they may."""
    only: tuple[str, ...] | None = None
    """Groups to decide about; None for all."""
    migration: Migration = "unknown"
    """Whether the brokers would migrate classic groups online."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """This batch's version of the tables that decisions depend on."""

    groups: DataFrame
    """`schemas.CONSUMER_GROUPS`."""
    lags: DataFrame
    """`schemas.PARTITION_LAG`."""
    topic_offsets: DataFrame
    """`schemas.TOPIC_OFFSETS`."""
    control_messages: DataFrame | None
    """`fold.control_messages.control_messages_by_group`; None while there are neither acknowledgements nor orders."""

    def only(self, group_ids: tuple[str, ...]) -> "Stored":
        """The same tables, less the rows of other groups."""
        wanted = F.col("group_id").isin(*group_ids)
        return replace(self, groups=self.groups.where(wanted), lags=self.lags.where(wanted))


def make_plans(
    stored: Stored,
    settings: PlanSettings,
    memory: PlanMemory,
) -> DataFrame:
    """One row for each group that has members or commits.

    Its columns are those of `schemas.PLAN_STATE` that hang on this decision alone, and `rates`: what was learned of the
    group's members.

    Args:
        stored: The tables.
        settings: See `PlanSettings`.
        memory: Of the decisions before.
    """
    if settings.only is not None:
        stored = stored.only(settings.only)
    everything = (
        stored.lags.groupBy("group_id")
        .agg(F.min("offsets_partition").alias("commits_partition"))
        .join(stored.groups.select("group_id", *_GROUP), on="group_id", how="full_outer")
        .join(_known(stored.groups.sparkSession, memory, stored.control_messages), on="group_id", how="left")
    )
    partitions = _partitions(stored.groups, stored.lags, stored.topic_offsets)
    return (
        partitions.groupBy("group_id")
        .cogroup(everything.groupBy("group_id"))
        .applyInArrow(_planner(settings), schema=_ROW)
    )


def _known(spark: SparkSession, memory: PlanMemory, control_messages: DataFrame | None) -> DataFrame:
    """One row per group with what was decided before, and what its members and operators say."""
    plans, states = memory.published, memory.states
    rows = [
        (group, *(_fields(plans[group]) if group in plans else (None,) * 4), states.get(group))
        for group in sorted(plans.keys() | states.keys())
    ]
    decided = spark.createDataFrame(rows, _DECIDED)
    if control_messages is None:
        return decided
    return decided.join(control_messages, on="group_id", how="full_outer")


def _fields(plan: Published) -> tuple[int, str, str, int]:
    return plan.epoch, plan.target_hash, plan.base_hash, plan.valid_until_ms


def _partitions(groups: DataFrame, lags: DataFrame, topic_offsets: DataFrame) -> DataFrame:
    """Each group's subscribed partitions, as far as they exist, with what is known of each."""
    subscribed = groups.select(
        "group_id", F.explode(F.array_distinct(F.flatten("members.topics"))).alias("topic")
    )
    existing = topic_offsets.where("deleted_at is null").select(
        "topic", "partition", "log_start_offset", "log_end_offset", "observed_at", "arrival_rate", "error"
    )
    commits = lags.select(
        *("group_id", "topic", "partition", "committed_offset", "drain_rate", "lag_seconds"),
        # Partitions of topics that are gone are not among the existing ones.
        F.expr("committed_offset is not null and lag is null").alias("is_incomparable"),
    )
    return subscribed.join(existing, on="topic", how="inner").join(
        commits, on=["group_id", "topic", "partition"], how="left"
    )


def _planner(settings: PlanSettings) -> Any:
    """The function for `cogroup().applyInArrow`; unhinted, so that Spark takes it for the form with tables."""

    def plan(partitions, group):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - see above
        row = group.to_pylist()[0]
        decision = _decide(row, partitions, settings)
        return pa.Table.from_pylist(
            [to_row(row["group_id"], decision, at_ms=settings.at_ms, batch_id=settings.batch_id)],
            schema=_ARROW,
        )

    return plan


def _decide(row: Mapping[str, Any], partitions: pa.Table, settings: PlanSettings) -> Decision:
    rules = _rules(row["group_id"], settings)
    try:
        return decide(
            group_facts(
                row,
                cluster=settings.cluster,
                behind=settings.behind,
                provisional_reason=settings.provisional_reason,
                held=settings.held,
            ),
            partition_facts(partitions),
            rules,
            published(row),
            from_json(row["last_state"]),
            now_ms=settings.now_ms,
        )
    except Exception as error:  # noqa: BLE001 - a fault that one group brings to light must not stop all others
        return Decision(
            strategy=rules.strategy,
            verdict=Verdict(decided="abstain", reason=reasons.planning_failed(error)),
            state=from_json(row.get("last_state")),
        )


def _rules(group_id: str, settings: PlanSettings) -> Rules:
    config = settings.config
    own = config.for_group(group_id)
    return Rules(
        cluster=settings.cluster,
        strategy=own.strategy,
        options=own.options,
        auto_offset_reset=own.auto_offset_reset,
        exclude=own.exclude,
        dry_run=own.dry_run,
        max_staleness_ms=config.max_staleness_s * 1000,
        valid_for_ms=config.valid_for_s * 1000,
        max_record_bytes=settings.max_record_bytes,
        guards=guard_limits(own.guards),
        migration=settings.migration,
    )


def guard_limits(guards: GuardsConfig) -> Guards:
    """The guards as a decision takes them, in milliseconds."""
    return Guards(
        min_improvement=guards.min_improvement,
        confirmations=guards.confirmations,
        settle_ms=guards.settle_s * 1000,
        min_lag=guards.min_lag,
        min_lag_ms=guards.lag_limit_s * 1000,
        cooldown_ms=guards.cooldown_s * 1000,
        cooldown_max_ms=guards.cooldown_max_s * 1000,
        moves_share=guards.moves_share,
        partition_rest_ms=guards.partition_rest_s * 1000,
        partition_moves_per_day=guards.partition_moves_per_day,
        pin=guards.pin,
    )
