"""An assignment in figures: what each member has before and after, and what each move buys."""

from dataclasses import dataclass

import numpy as np

from assignor.evaluation.drain.bound import LowerBound, group_bound
from assignor.evaluation.drain.cost import Price
from assignor.evaluation.drain.counterfactual import Loads, Moved, undone
from assignor.evaluation.drain.time import drain_s, member_drain_s, summed, times_s
from assignor.model.arrays import Floats, Int32s, Int64s
from assignor.model.assignment import Assignment
from assignor.model.group import Group

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """Figures by member (N entries) and by move; times in seconds, `inf` for never."""

    partitions_before: Int64s
    partitions_after: Int64s
    lag_before: Floats
    lag_after: Floats
    member_s_before: Floats | None
    """Drain time of each member as owned; None when capacities are unknown, as all times."""
    member_s_after: Floats | None
    """Drain time of each member as assigned."""
    before_s: float | None
    """Drain time of the group as owned."""
    after_s: float | None
    """Drain time of the group as assigned."""
    bound: LowerBound | None
    """What no assignment can beat."""
    moves: tuple["MoveReport", ...]
    """Every partition that changes hands, in (topic, partition) order."""

    @property
    def ratio(self) -> float | None:
        """Drain time as assigned over the bound: 1 cannot be bettered; None where one of them is not finite."""
        if (
            self.after_s is None
            or self.bound is None
            or not np.isfinite([self.after_s, self.bound.time_s]).all()
        ):
            return None
        return self.after_s / self.bound.time_s if self.bound.time_s > 0 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport:
    """One move, against the same assignment without it."""

    pid: int
    giver: int
    """Member index, -1 for nobody."""
    taker: int
    """Member index, -1 for nobody."""
    without_s: float | None
    """Drain time of the group without the move.

    None without capacities, and where nobody gives or takes: then there is nothing to compare with.
    """
    saves_record_s: float | None
    """Lag summed over time that the move saves within a day, record-seconds."""


def report(group: Group, assignment: Assignment) -> Report:
    """The figures of an assignment of `group`.

    What moves buy does not add up: of two moves that only help together each buys what both do.
    """
    member, owner, n = assignment.member, group.owner, group.n_members
    held, owned = member >= 0, owner >= 0
    return Report(
        partitions_before=np.bincount(owner[owned], minlength=n),
        partitions_after=np.bincount(member[held], minlength=n),
        lag_before=summed(group.lag[owned], by=owner[owned], n=n),
        lag_after=summed(group.lag[held], by=member[held], n=n),
        member_s_before=member_drain_s(group, owner),
        member_s_after=member_drain_s(group, member),
        before_s=drain_s(group, owner),
        after_s=drain_s(group, member),
        bound=group_bound(group),
        moves=_moves(group, member),
    )


def _moves(group: Group, member: Int32s) -> tuple[MoveReport, ...]:
    holder = group.ownership.holder
    pids = np.nonzero(member != holder)[0]
    without_s, saves_record_s = np.full(len(pids), np.nan), np.full(len(pids), np.nan)
    compared = (member[pids] >= 0) & (group.owner[pids] >= 0)
    if group.capacity is not None and compared.any():
        without_s[compared], saves_record_s[compared] = _without_each(
            group, group.capacity, member, pids[compared].astype(np.int32)
        )
    return tuple(
        MoveReport(
            pid=pid,
            giver=int(holder[pid]),
            taker=int(member[pid]),
            without_s=None if np.isnan(seconds) else seconds,
            saves_record_s=None if np.isnan(records) else records,
        )
        for pid, seconds, records in zip(
            pids.tolist(), without_s.tolist(), saves_record_s.tolist(), strict=True
        )
    )


def _without_each(group: Group, capacity: Floats, member: Int32s, pids: Int32s) -> tuple[Floats, Floats]:
    """Drain time of the group without each move, and the record-seconds that the move saves."""
    held, n = member >= 0, group.n_members
    loads = Loads(
        lag=summed(group.lag[held], by=member[held], n=n),
        rate=summed(group.rate[held], by=member[held], n=n),
        capacity=capacity,
    )
    moved = Moved(
        lag=group.lag[pids].astype(np.float64),
        rate=group.rate[pids],
        giver=group.owner[pids],
        taker=member[pids],
    )
    price = Price(horizon_s=_DAY_S, floor_s=0.0)
    without = undone(loads, moved, time_s=_time_s, record_s=price.record_s)
    return without.slowest_s(), without.record_s


def _time_s(lag: Floats, rate: Floats, capacity: Floats) -> Floats:
    return times_s(lag, capacity - rate)
