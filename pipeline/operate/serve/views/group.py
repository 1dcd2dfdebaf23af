"""One group in full: its figures, its members before and after the plan, its partitions, its orders, and advice."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.model import Config
from pipeline.operate.listings import decisions, groups, partitions
from pipeline.operate.listings.orders import ORDERS
from pipeline.operate.old_log_ends import IS_OLD, limit_of, with_is_old
from pipeline.operate.output import Row, iterate, names
from pipeline.operate.serve.snapshot import Snapshot
from pipeline.operate.serve.views.advice import advice
from pipeline.operate.serve.views.fleet import Fleet
from pipeline.operate.serve.views.following import Following, following
from pipeline.operate.serve.views.members import member_rows

_WORST_LAG = 2**63 - 1
_DECISION = (
    *("epoch", "strategy", "base_generation", "valid_until", "assignment", "moves", "updated_at"),
    *("target_hash", "base_hash", "awaiting_since"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """Data of one group."""

    row: Row
    """The group's row in the fleet."""
    members: list[Row]
    """Members of the group, and a null member for partitions without an owner."""
    decision: Row | None
    """Target and moves of the newest decision; None without a decision."""
    orders: Row | None
    """Orders of operators; None without any."""
    advice: list[str]
    following: Following | None
    """Members that follow plans; None if no plan waits for approval, or the members are unknown."""
    partitions: pa.Table
    """Rows of `lagwise lag`, with `is_old`."""


def group_view(found: Snapshot, fleet: Fleet, group_id: str, config: Config) -> GroupView | None:
    """Return the data of this group; None if no group has this name.

    Raises:
        StoreError: The tables cannot be read.
        DecodeError: lagwise did not write the target of its plan.
    """
    row = fleet.rows.get(group_id)
    if row is None:
        return None
    lag = with_is_old(lag_rows(found, group_id), limit_of(config))
    own = pc.field("group_id") == group_id
    decision = _one(found.read("plan_state", columns=_DECISION, where=own))
    listed = groups.by_member(groups.group_rows(found, own), ("group_id",))
    members = member_rows(
        listed=list(iterate(listed)),
        lag=lag,
        decision=decision,
        plan=fleet.plans.get(group_id),
        capacities=fleet.members.capacities(group_id),
    )
    waits = row["plan"] is not None and row["plan"]["decision"] == "awaiting_approval"
    moves = (decision["moves"] or ()) if decision else ()
    return GroupView(
        row=row,
        members=members,
        decision=decision,
        orders=_one(found.read("orders", columns=ORDERS, where=own)),
        advice=list(advice(row, members)),
        following=following(found, row, members, moves) if waits else None,
        partitions=lag.select([*names(partitions.COLUMNS), IS_OLD]),
    )


def lag_rows(found: Snapshot, group_id: str) -> pa.Table:
    """Return the rows of `lagwise lag` for this group.

    Raises:
        StoreError: The table cannot be read.
    """
    rows = found.read(
        "partition_lag", columns=names(partitions.COLUMNS), where=pc.field("group_id") == group_id
    )
    return partitions.ordered(rows, key="group")


def worst(lag: pa.Table, most: int) -> pa.Table:
    """At most this many partitions, in their own order: unknown lag is chosen first, then the largest lag."""
    if lag.num_rows <= most:
        return lag
    # What is unknown is worse than any lag.
    known = pc.fill_null(lag["lag"], _WORST_LAG).combine_chunks()
    worst_first = pc.array_sort_indices(known, order="descending")
    return lag.take(worst_first[:most].sort())


def decision_rows(found: Snapshot, group_id: str, last: int) -> pa.Table:
    """Return the rows of `lagwise recommendations` for this group, newest first.

    Raises:
        StoreError: The tables cannot be read.
    """
    rows = decisions.newest(decisions.decisions(found, pc.field("group_id") == group_id), last)
    return rows.select(names((*decisions.COLUMNS, decisions.ASSIGNMENT, decisions.EFFECT_WHY)))


def _one(rows: pa.Table) -> Row | None:
    return next(iterate(rows), None)
