"""Read back: plans as the tables hold them, of one batch or of all batches before a start.

lagwise publishes, and remembers between decisions, only what it has read from there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow_columns import moment
from pipeline.planning.memory import WrittenPlan
from pipeline.planning.values import Published

Read: TypeAlias = Callable[[list[str], pc.Expression], pa.Table]

_PLAN = ("group_id", "epoch", "target_hash", "base_hash", "valid_until")
"""Columns of a published plan, less its record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """Decisions of one batch, by group, sorted."""

    plans: Mapping[str, WrittenPlan]
    """Records to publish."""
    states: Mapping[str, str]
    """Column `state` of the rows that have one."""


def decisions_of(decisions: pa.Table) -> Decisions:
    """Return what to publish and remember of one batch's decisions, rows of `schemas.PLAN_STATE`."""
    rows = decisions.select([*_PLAN, "decision", "record", "state"]).sort_by("group_id").to_pylist()
    return Decisions(
        plans={
            row["group_id"]: WrittenPlan(plan=_published(row), value=row["record"])
            for row in rows
            if row["decision"] == "publish"
        },
        states={row["group_id"]: row["state"] for row in rows if row["state"]},
    )


class NewestPlans(NamedTuple):
    """Plans before a start, from the history, by group."""

    plans: Mapping[str, Published]
    """Plans with the highest epoch."""
    to_send: Mapping[str, WrittenPlan]
    """Plans to send unless they were sent before."""


def newest_plans(read: Read, *, now_ms: int) -> NewestPlans:
    """Return the plan with the highest epoch of each group.

    Args:
        read: Rows of `schemas.RECOMMENDATIONS`: some columns, where a condition holds.
        now_ms: Time.
    """
    is_published = pc.field("decision") == "publish"
    rows = read([*_PLAN], is_published).sort_by("epoch").to_pylist()
    plans = {row["group_id"]: _published(row) for row in rows}
    # All records there ever were are too much to read. A withdrawal, which has no target, always holds.
    holds = (pc.field("valid_until") > moment(now_ms)) | (pc.field("target_hash") == "")
    records = read([*_PLAN, "record"], is_published & holds).to_pylist()
    to_send = {
        row["group_id"]: WrittenPlan(plan=_published(row), value=row["record"])
        for row in records
        if row["epoch"] == plans[row["group_id"]].epoch
    }
    return NewestPlans(plans, to_send)


def _published(row: Mapping[str, Any]) -> Published:
    return Published(
        epoch=row["epoch"],
        target_hash=row["target_hash"],
        base_hash=row["base_hash"],
        valid_until_ms=round(row["valid_until"].timestamp() * 1000),
    )
