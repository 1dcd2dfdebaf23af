"""Contents of the tables after a batch, as the views show them; read without Spark."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

import pyarrow.compute as pc

from pipeline.operate.statuses import rank
from pipeline.tables.reading import Tables

Row = Mapping[str, Any]
Owners: TypeAlias = Mapping[tuple[str, str, int], str]

_LAG = (
    *("group_id", "topic", "partition", "lag", "lag_at_commit", "committed_offset", "log_start_offset"),
    *("log_end_offset", "lag_seconds", "lag_seconds_is_lower_bound", "arrival_rate", "drain_rate"),
    *("status", "member_id", "client_id", "updated_at"),
)
_GROUPS = ("group_id", "group_type", "assignor", "members")
_PLANS = (
    *("group_id", "created_at", "decision", "reason", "epoch", "moves"),
    *("drain_s_before", "drain_s_after", "drain_s_bound", "capacity_known"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Partitions of one member and their lag; partitions without a known owner form a share, too."""

    client_id: str | None
    """None if the owner is unknown."""
    partitions: int
    lag: int
    """Sum of the known lags, in records."""
    unread: int
    """The same, plus all records of partitions without a commit, since the demo's groups start at the log start."""
    lag_at_commit: int | None
    """The part of `unread` at the newest commits; None if it is unknown for a partition with lag."""
    lag_seconds: float | None
    """Maximum over its partitions; None if it is unknown for a partition with lag."""
    arrival_rate: float
    """Records/s."""
    drain_rate: float
    """Records/s."""
    status: str
    """Worst status of its partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One group."""

    group_id: str
    group_type: str | None
    assignor: str | None
    shares: tuple[Share, ...]
    """Shares by client id; the one without an owner is last."""

    @property
    def whole(self) -> Share:
        """All shares as one, named after the number of members; figures that one share lacks are unknown."""
        shares = self.shares
        members = sum(share.client_id is not None for share in shares)
        behind = [share.lag_seconds for share in shares if share.partitions]
        return Share(
            client_id=f"{members} member{'' if members == 1 else 's'}" if members else None,
            partitions=sum(share.partitions for share in shares),
            lag=sum(share.lag for share in shares),
            unread=sum(share.unread for share in shares),
            lag_at_commit=_all_or_none(sum, [share.lag_at_commit for share in shares]),
            lag_seconds=_all_or_none(max, behind) if behind else None,
            arrival_rate=sum(share.arrival_rate for share in shares),
            drain_rate=sum(share.drain_rate for share in shares),
            status=min((share.status for share in shares), key=rank, default="OK"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One row of `recommendations`."""

    group_id: str
    created_at: datetime
    decision: str
    reason: str | None
    epoch: int | None
    moves: int
    drain_s_before: float | None
    drain_s_after: float | None
    drain_s_bound: float | None
    capacity_known: bool | None
    """If False, the times are unknown; otherwise a time of None means never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All groups, sorted by id, and the plans since the previous snapshot."""

    groups: tuple[GroupView, ...]
    plans: tuple[Plan, ...]
    """Oldest first."""
    seen_at: datetime | None
    """Time of its batch; None before the first."""
    owners: Owners = field(default_factory=dict)
    """Member id by group, topic and partition; partitions without a known owner are missing."""

    @property
    def lag(self) -> int:
        """Records."""
        return sum(group.whole.lag for group in self.groups)

    @property
    def partitions(self) -> int:
        """Counted once per group that reads them."""
        return sum(share.partitions for group in self.groups for share in group.shares)


def read_snapshot(tables: Tables, *, plans_after: datetime | None) -> Snapshot:
    """The newest state, with the plans made after `plans_after`, or all if that is None.

    Raises:
        StoreError: A table cannot be read.
    """
    lags = tables.read("partition_lag", columns=_LAG).to_pylist()
    groups = tables.read("consumer_groups", columns=_GROUPS).to_pylist()
    later = None if plans_after is None else pc.field("created_at") > plans_after
    plans = tables.read("recommendations", columns=_PLANS, where=later).to_pylist()
    seen_at = max((row["updated_at"] for row in lags), default=None)
    return Snapshot(
        groups=_groups(groups, lags),
        plans=_plans(plans),
        seen_at=seen_at,
        owners={
            (row["group_id"], row["topic"], row["partition"]): row["member_id"]
            for row in lags
            if row["member_id"] is not None
        },
    )


def _groups(groups: Sequence[Row], lags: Sequence[Row]) -> tuple[GroupView, ...]:
    known = {row["group_id"]: row for row in groups}
    by_group: dict[str, list[Row]] = defaultdict(list)
    for row in lags:
        by_group[row["group_id"]].append(row)
    return tuple(
        GroupView(
            group_id=group_id,
            group_type=known.get(group_id, {}).get("group_type"),
            assignor=known.get(group_id, {}).get("assignor"),
            shares=_shares(known.get(group_id, {}).get("members") or (), by_group[group_id]),
        )
        for group_id in sorted({*known, *by_group})
    )


def _shares(members: Sequence[Row], lags: Sequence[Row]) -> tuple[Share, ...]:
    names = {member["member_id"]: member["client_id"] for member in members}
    names |= {row["member_id"]: row["client_id"] for row in lags}
    by_member: dict[str | None, list[Row]] = {member_id: [] for member_id in names}
    for row in lags:
        by_member[row["member_id"]].append(row)
    order = sorted(names, key=lambda one: (one is None, names[one] or "", one or ""))
    return tuple(_share(names[member_id], by_member[member_id]) for member_id in order)


def _share(client_id: str | None, rows: Sequence[Row]) -> Share:
    return Share(
        client_id=client_id,
        partitions=len(rows),
        lag=sum(_known(rows, "lag")),
        unread=sum(map(_unread, rows)),
        lag_at_commit=_all_or_none(sum, list(map(_one_at_commit, rows))),
        lag_seconds=_behind(rows),
        arrival_rate=sum(_known(rows, "arrival_rate")),
        drain_rate=sum(_known(rows, "drain_rate")),
        status=min((row["status"] for row in rows), key=rank, default="OK"),
    )


def _unread(row: Row) -> int:
    if row["committed_offset"] is None and row["log_end_offset"] is not None:
        return int(row["log_end_offset"] - (row["log_start_offset"] or 0))
    return int(row["lag"] or 0)


def _all_or_none(of: Callable[[list[Any]], Any], values: Sequence[Any]) -> Any:
    """A figure of the values; None if one is unknown."""
    known = [one for one in values if one is not None]
    return of(known) if len(known) == len(values) else None


def _one_at_commit(row: Row) -> int | None:
    if row["committed_offset"] is None:
        return None if row["log_end_offset"] is None else _unread(row)
    return 0 if row["lag"] == 0 else row["lag_at_commit"]


def _behind(rows: Sequence[Row]) -> float | None:
    """Seconds; None for a lower bound, which every older backlog has at first."""
    if any(row["lag_seconds"] is None or row["lag_seconds_is_lower_bound"] for row in rows):
        return None
    return max((row["lag_seconds"] for row in rows), default=0.0)


def _known(rows: Iterable[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def _plans(rows: Sequence[Row]) -> tuple[Plan, ...]:
    plans = [Plan(**{**row, "moves": len(row["moves"] or ())}) for row in rows]
    return tuple(sorted(plans, key=lambda plan: (plan.created_at, plan.group_id)))
