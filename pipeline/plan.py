"""Plan: each group's partitions and members to one row of `recommendations`, on the executors.

A group is one Arrow table of partitions and one of a single row with everything else; the decision is
`assignor.recommend.decide`, and this module only brings tables to it and back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from assignor.plan_facts import Decision, GroupFacts, MemberFacts, PartitionFacts, Published, Rules
from assignor.recommend import decide
from assignor.topics import java_order
from pipeline.columns import floats, int64s, millis
from pipeline.config_model import PlanConfig
from pipeline.schemas import RECOMMENDATIONS

_ROW = t.StructType([field for field in RECOMMENDATIONS if field.name != "cluster"])
_ARROW = to_arrow_schema(_ROW)

_PUBLISHED = "group_id string, last_epoch long, last_target string, last_base string, last_valid_ms long"
_GROUP = ("group_type", "state", "protocol_type", "assignor", "generation", "members", "offsets_partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """What decisions depend on, beside the tables."""

    cluster: str
    config: PlanConfig
    max_record_bytes: int
    at_ms: int
    """Clock of the batch."""
    batch_id: int
    behind: tuple[int, ...]
    """Partitions of the offsets topic whose groups are provisional."""
    provisional_reason: str | None


def make_plans(
    groups: DataFrame,
    lags: DataFrame,
    topic_offsets: DataFrame,
    settings: PlanSettings,
    published: Mapping[str, Published],
) -> DataFrame:
    """One row of `schemas.RECOMMENDATIONS` for each group that has members or commits.

    Args:
        groups: `schemas.CONSUMER_GROUPS`, this batch's version.
        lags: `schemas.PARTITION_LAG`, this batch's version.
        topic_offsets: `schemas.TOPIC_OFFSETS`, this batch's version.
        settings: See `PlanSettings`.
        published: Newest plan of each group.
    """
    spark = groups.sparkSession
    known = spark.createDataFrame(
        [(g, p.epoch, p.target_hash, p.base_hash, p.valid_until_ms) for g, p in sorted(published.items())],
        _PUBLISHED,
    )
    everything = (
        lags.groupBy("group_id")
        .agg(F.min("offsets_partition").alias("commits_partition"))
        .join(groups.select("group_id", *_GROUP), on="group_id", how="full_outer")
        .join(known, on="group_id", how="left")
    )
    partitions = _partitions(groups, lags, topic_offsets)
    return (
        partitions.groupBy("group_id")
        .cogroup(everything.groupBy("group_id"))
        .applyInArrow(_planner(settings), schema=_ROW)
    )


def _partitions(groups: DataFrame, lags: DataFrame, topic_offsets: DataFrame) -> DataFrame:
    """Each group's subscribed partitions, as far as they exist, with what is known of each."""
    subscribed = groups.select(
        "group_id", F.explode(F.array_distinct(F.flatten("members.topics"))).alias("topic")
    )
    existing = topic_offsets.where("deleted_at is null").select(
        "topic", "partition", "log_start_offset", "log_end_offset", "observed_at", "arrival_rate"
    )
    commits = lags.select("group_id", "topic", "partition", "committed_offset", "drain_rate")
    return subscribed.join(existing, on="topic", how="inner").join(
        commits, on=["group_id", "topic", "partition"], how="left"
    )


def _planner(settings: PlanSettings) -> Any:
    """The function for `cogroup().applyInArrow`; unhinted, so that Spark takes it for the form with tables."""

    def plan(partitions, group):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - see above
        row = group.to_pylist()[0]
        decision = _decide(row, partitions, settings)
        return pa.Table.from_pylist([_to_row(row["group_id"], decision, settings)], schema=_ARROW)

    return plan


def _decide(row: Mapping[str, Any], partitions: pa.Table, settings: PlanSettings) -> Decision:
    rules = _rules(row["group_id"], settings)
    try:
        return decide(
            _group_facts(row, settings),
            _partition_facts(partitions),
            rules,
            _published(row),
            now_ms=settings.at_ms,
        )
    except Exception as error:  # noqa: BLE001 - a fault that one group brings to light must not stop all others
        reason = f"planning failed, please report it: {type(error).__name__}: {error}"
        return Decision(decided="abstain", reason=reason, strategy=rules.strategy)


def _group_facts(row: Mapping[str, Any], settings: PlanSettings) -> GroupFacts:
    partition = row["offsets_partition"] if row["offsets_partition"] is not None else row["commits_partition"]
    return GroupFacts(
        group_id=row["group_id"],
        group_type=row["group_type"],
        state=row["state"],
        protocol_type=row["protocol_type"],
        assignor=row["assignor"],
        generation=row["generation"],
        members=tuple(_member_facts(member) for member in row["members"] or ()),
        provisional=settings.provisional_reason if partition in settings.behind else None,
    )


def _member_facts(member: Mapping[str, Any]) -> MemberFacts:
    return MemberFacts(
        member_id=member["member_id"],
        instance_id=member["group_instance_id"],
        client_id=member["client_id"],
        client_host=member["client_host"],
        topics=tuple(member["topics"]),
        # Arrow maps are lists of pairs.
        assigned={topic: tuple(numbers) for topic, numbers in member["assigned"]},
        error=member["error"],
    )


def _partition_facts(partitions: pa.Table) -> PartitionFacts:
    table = partitions.combine_chunks()
    topics = table["topic"].to_pylist()
    numbers = int64s(_column(table, "partition"))
    names = sorted(set(topics), key=java_order)
    rank = {name: index for index, name in enumerate(names)}
    order = np.lexsort((numbers, np.array([rank[topic] for topic in topics], np.int64)))
    return PartitionFacts(
        topic=[topics[index] for index in order.tolist()],
        partition=numbers[order],
        committed=int64s(_column(table, "committed_offset"))[order],
        log_start=int64s(_column(table, "log_start_offset"))[order],
        log_end=int64s(_column(table, "log_end_offset"))[order],
        observed_at_ms=millis(_column(table, "observed_at"))[order],
        arrival_rate=floats(_column(table, "arrival_rate"))[order],
        drain_rate=floats(_column(table, "drain_rate"))[order],
    )


def _column(table: pa.Table, name: str) -> pa.Array:
    chunks = table[name].chunks
    return chunks[0] if chunks else pa.array([], table.schema.field(name).type)


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
    )


def _published(row: Mapping[str, Any]) -> Published | None:
    if row["last_epoch"] is None:
        return None
    return Published(
        epoch=row["last_epoch"],
        target_hash=row["last_target"],
        base_hash=row["last_base"],
        valid_until_ms=row["last_valid_ms"],
    )


def _to_row(group_id: str, decision: Decision, settings: PlanSettings) -> dict[str, Any]:
    return {
        "group_id": group_id,
        "epoch": decision.epoch,
        "decision": decision.decided,
        "reason": decision.reason,
        "strategy": decision.strategy,
        "base_generation": decision.base_generation,
        "base_hash": decision.base_hash,
        "target_hash": decision.target_hash,
        "assignment": _pairs(decision.assignment),
        "moves": [
            {
                "topic": move.topic,
                "partition": move.partition,
                "from": move.from_member,
                "to": move.to_member,
                "lag": move.lag,
            }
            for move in decision.moves
        ],
        "drain_s_before": decision.drain_s_before,
        "drain_s_after": decision.drain_s_after,
        "drain_s_bound": decision.drain_s_bound,
        "imbalance_before": decision.imbalance_before,
        "imbalance_after": decision.imbalance_after,
        "record": decision.record,
        "valid_until": _time(decision.valid_until_ms),
        "created_at": _time(settings.at_ms),
        "batch_id": settings.batch_id,
    }


def _pairs(
    assignment: Mapping[str, Mapping[str, str]] | None,
) -> list[tuple[str, list[tuple[str, str]]]] | None:
    if assignment is None:
        return None
    return [(member, sorted(topics.items())) for member, topics in sorted(assignment.items())]


def _time(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, tz=timezone.utc)
