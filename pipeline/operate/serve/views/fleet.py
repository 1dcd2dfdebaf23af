"""All groups, one row each: the figures of `lagwise groups` and `lagwise lag --total group`, and the plan."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.config.model import Config
from pipeline.operate.listings import groups, partitions
from pipeline.operate.listings.totals import totals
from pipeline.operate.output import Row, iterate
from pipeline.operate.serve.snapshot import Snapshot
from pipeline.operate.serve.views.crew import Members, members_of
from pipeline.operate.serve.views.facts import facts
from pipeline.operate.serve.views.plans import Plan, plan_row, plans_of
from pipeline.operate.serve.views.verdict import verdict
from pipeline.operate.statuses import rank

_UNKNOWN = (
    *("lag", "lag_at_commit", "max_lag", "lag_seconds"),
    *("growing", "retention_seconds", "arrival_rate", "drain_rate"),
)
_NO_LAG: Row = {
    **dict.fromkeys(("partitions", "unknown_lag", "old_lag", "provisional"), 0),
    **dict.fromkeys(
        ("unknown_lag_at_commit", "unknown_lag_seconds", "unknown_trend", "unknown_retention"), 0
    ),
    **dict.fromkeys(_UNKNOWN),
    "statuses": {},
    "lag_seconds_is_lower_bound": False,
}
"""Figures of a group without commits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All groups of one version of the tables."""

    rows: Mapping[str, Row]
    """By group name, in the order of names."""
    members: Members
    plans: Mapping[str, Plan]
    """Plans of the groups that have a decision."""


def fleet_of(found: Snapshot, config: Config) -> Fleet:
    """All groups, from their rows.

    Raises:
        StoreError: They cannot be read.
    """
    rows = facts(found, config)
    members = members_of(rows)
    plans = {plan.row["group_id"]: plan for plan in plans_of(rows)}
    sums = _sums(rows.partition_lag)
    listed = groups.with_decisions(groups.group_rows(found, None), found, None)
    known = listed.drop_columns(["members", "offsets_partition"])
    return Fleet(
        rows={row["group_id"]: _row(row, sums, members, plans) for row in iterate(known)},
        members=members,
        plans=plans,
    )


def ordered(rows: Sequence[Row], sort: partitions.SortKey) -> list[Row]:
    """Rows by name, or by a figure: the largest first, unknown ones last."""
    if sort in {"group", "topic"}:
        return sorted(rows, key=lambda row: row["group_id"])
    return sorted(rows, key=lambda row: (row[sort] is None, -(row[sort] or 0), row["group_id"]))


def _row(row: Row, sums: Mapping[str, Row], members: Members, plans: Mapping[str, Plan]) -> Row:
    group_id = row["group_id"]
    known = {
        **row,
        "member_count": members.count(group_id),
        "members_idle": members.idle(group_id),
        "members_stuck": members.stuck.get(group_id),
        "capacity_ratio": members.capacity_ratio(group_id),
        **sums.get(group_id, _NO_LAG),
        "plan": plan_row(plans[group_id]) if group_id in plans else None,
    }
    judged = verdict(known)
    return {**known, "verdict": judged.words, "verdict_level": judged.level, "verdict_why": judged.why}


def _sums(lag: pa.Table) -> dict[str, Row]:
    """Totals of each group, as in the commands, and its number of partitions in each status."""
    statuses = _statuses(lag)
    summed, _ = totals(lag, by="group")
    return {row["group_id"]: {**row, "statuses": statuses[row["group_id"]]} for row in iterate(summed)}


def _statuses(lag: pa.Table) -> dict[str, dict[str, int]]:
    counted = lag.group_by(["group_id", "status"]).aggregate([("partition", "count")])
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for row in sorted(iterate(counted), key=lambda row: rank(row["status"])):
        found[row["group_id"]][row["status"]] = row["partition_count"]
    return found
