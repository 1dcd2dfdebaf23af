"""Read back: what `recommendations` says of plans, of one batch or of all before a start.

Nothing is published, and nothing remembered between decisions, that was not read from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from pipeline.planning.memory import WrittenPlan
from pipeline.planning.values import Published

_LATELY = timedelta(hours=1)
_PLAN = ("epoch", "target_hash", "base_hash", "valid_until", "record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What one batch has decided; by group, sorted."""

    plans: Mapping[str, WrittenPlan]
    """Those to be published."""
    states: Mapping[str, str]
    """Column `state` of the rows that have one."""


def read_decisions(recommendations: DataFrame) -> Decisions:
    """The decisions of one batch, in one reading.

    Args:
        recommendations: Rows of the batch.
    """
    rows = recommendations.select("group_id", "decision", "state", *_plan_columns()).collect()
    rows.sort(key=lambda row: str(row["group_id"]))
    return Decisions(
        plans={row["group_id"]: _written(row) for row in rows if row["decision"] == "publish"},
        states=_states(rows),
    )


def read_newest_plans(recommendations: DataFrame, *, cluster: str) -> dict[str, WrittenPlan]:
    """The plan of the highest epoch of each group.

    Args:
        recommendations: The table.
        cluster: Whose groups.
    """
    newest = (
        recommendations.where("decision = 'publish'")
        .where(F.col("cluster") == cluster)
        .groupBy("group_id")
        .agg(F.max_by(F.struct(*_PLAN), "epoch").alias("last"))
        .select("group_id", *_plan_columns("last."))
    )
    return {row["group_id"]: _written(row) for row in newest.collect()}


def read_states(recommendations: DataFrame, *, cluster: str, interval_s: int) -> dict[str, str]:
    """Column `state` of the newest row of each group.

    Args:
        recommendations: The table.
        cluster: Whose groups.
        interval_s: Time between two evaluations of all groups.
    """
    own = recommendations.where(F.col("cluster") == cluster)
    newest = own.agg(F.max("created_at")).collect()[0][0]
    if newest is None:
        return {}
    # Every group that is there has a row for every evaluation: to go back some is enough, and a month is much to read.
    since = newest - max(_LATELY, timedelta(seconds=2 * interval_s))
    lately = own.where(F.col("created_at") >= since)
    return _states(lately.groupBy("group_id").agg(F.max_by("state", "created_at").alias("state")).collect())


def _states(rows: list[Row]) -> dict[str, str]:
    return {row["group_id"]: row["state"] for row in rows if row["state"]}


def _plan_columns(prefix: str = "") -> list[str | Column]:
    plain = (f"{prefix}{name}" for name in _PLAN if name != "valid_until")
    return [*plain, F.unix_millis(f"{prefix}valid_until").alias("valid_until_ms")]


def _written(row: Row) -> WrittenPlan:
    plan = Published(
        epoch=row["epoch"],
        target_hash=row["target_hash"],
        base_hash=row["base_hash"],
        valid_until_ms=row["valid_until_ms"],
    )
    return WrittenPlan(plan=plan, value=row["record"])
