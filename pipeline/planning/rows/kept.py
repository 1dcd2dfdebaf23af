"""Plan: decisions to stored rows: the newest of each group, the history, and members' rates.

Everything here is an Arrow table of one row per group, or of one per member.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.planning.rows import causes

_RECORDED_EVERY = timedelta(hours=1)
"""A group about which nothing new is decided has a row in the history so often, so that its figures can be followed."""

_COMPARED = (
    *("group_id", "decision", "reason", "strategy", "target_hash", "base_hash", "plan", "plan_effect"),
    *("probation_until", "recorded_at"),
)
"""Columns of `schemas.PLAN_STATE` that show whether a decision differs from the previous one."""


def newest_decisions(before: pa.Table, decided: pa.Table, *, cluster: str) -> pa.Table:
    """Rows of `schemas.PLAN_STATE` for the groups that were decided about.

    Args:
        before: The newest decisions before these, rows of `schemas.PLAN_STATE`.
        decided: `planning.step.make_plans`.
        cluster: Name of the cluster.
    """
    known = {row["group_id"]: row for row in before.select(_COMPARED).to_pylist()}
    compared = [name for name in _COMPARED if name != "recorded_at"]
    recorded = [
        _recorded_at(row, known.get(row["group_id"]))
        for row in decided.select([*compared, "epoch", "updated_at"]).to_pylist()
    ]
    rows = decided.drop(["rates"]).append_column("cluster", pa.array([cluster] * len(recorded), pa.string()))
    return rows.append_column("recorded_at", pa.array(recorded, decided.schema.field("updated_at").type))


def _recorded_at(row: Mapping[str, Any], last: Mapping[str, Any] | None) -> datetime:
    """Time of the group's newest row in the history: now if the decision goes into it."""
    now: datetime = row["updated_at"]
    # An operator who has approved a plan finds each answer in the history.
    is_answer = row["epoch"] is not None or causes.refuses_approval(row["reason"])
    if last is None or is_answer or _content(row) != _content(last):
        return now
    before: datetime = last["recorded_at"]
    return now if now - before >= _RECORDED_EVERY else before


def _content(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What is decided, by which guard or for which cause, about what, and what became of the plan before."""
    plan = row["plan"] or {}
    hashes = (row["target_hash"], row["base_hash"])
    return (
        row["decision"],
        row["strategy"],
        causes.cause_of(row["reason"]),
        *hashes,
        plan.get("epoch"),
        plan.get("status"),
        row["plan_effect"],
        row["probation_until"],
    )


def merged(before: pa.Table, newer: pa.Table, *, keep_days: int) -> pa.Table:
    """The newer rows, and those before them of other groups, for a number of days."""
    if newer.num_rows == 0:
        return before
    oldest = pc.max(newer["updated_at"]).as_py() - timedelta(days=keep_days)
    others = pc.and_(
        pc.invert(pc.is_in(before["group_id"], value_set=newer["group_id"].combine_chunks().unique())),
        pc.greater_equal(before["updated_at"], oldest),
    )
    return pa.concat_tables([before.filter(others).select(newer.schema.names).cast(newer.schema), newer])


def history(decisions: pa.Table) -> pa.Table:
    """Return rows of `schemas.RECOMMENDATIONS`: the rows of `schemas.PLAN_STATE` due for recording."""
    due = decisions.filter(pc.equal(decisions["recorded_at"], decisions["updated_at"]))
    dated = due.append_column("date", due["updated_at"].cast(pa.date32()))
    return dated.drop(["state", "recorded_at"]).rename_columns({"updated_at": "created_at"})


def member_rates(decided: pa.Table, *, cluster: str) -> pa.Table:
    """Rows of `schemas.MEMBER_RATES`: what the decisions have learned of each group's members.

    Args:
        decided: `planning.step.make_plans`.
        cluster: Name of the cluster.
    """
    rates = decided["rates"].combine_chunks()
    group, each = pc.list_parent_indices(rates), pc.list_flatten(rates)
    columns = {field.name: pc.struct_field(each, field.name) for field in rates.type.value_type}
    columns |= {name: decided[name].take(group) for name in ("group_id", "updated_at", "batch_id")}
    return pa.table(columns | {"cluster": pa.array([cluster] * len(each), pa.string())})
