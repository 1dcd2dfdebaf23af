"""An assignment in figures: what each member holds before and after, and what each move gains."""

from dataclasses import dataclass

import numpy as np

from assignor.evaluation.drain.bound import LowerBound, group_bound
from assignor.evaluation.drain.cost import CostModel
from assignor.evaluation.drain.counterfactual import MemberLoads, MovedPartitions, counterfactuals
from assignor.evaluation.drain.time import drain_s, member_drain_s, sums_held, times_s
from assignor.model.arrays import Floats, Int32s, Int64s
from assignor.model.assignment import Assignment
from assignor.model.group import Group

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AssignmentReport:
    """Figures by member (N entries) and by move; times in seconds, `inf` for never."""

    partitions_before: Int64s
    partitions_after: Int64s
    lag_before: Floats
    lag_after: Floats
    member_s_before: Floats | None
    """Drain time of each member as owned; None when capacities are unknown, like all times."""
    member_s_after: Floats | None
    """Drain time of each member as assigned."""
    before_s: float | None
    """Drain time of the group as owned."""
    after_s: float | None
    """Drain time of the group as assigned."""
    bound: LowerBound | None
    """Lower bound for every assignment."""
    moves: tuple["MoveReport", ...]
    """Every partition that changes its member, in (topic, partition) order."""

    @property
    def ratio(self) -> float | None:
        """Return drain time as assigned over the bound: 1 is optimal; None if one of them is not finite."""
        if (
            self.after_s is None
            or self.bound is None
            or not np.isfinite([self.after_s, self.bound.time_s]).all()
        ):
            return None
        return self.after_s / self.bound.time_s if self.bound.time_s > 0 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport:
    """One move, compared with the same assignment without it."""

    partition: int
    from_member: int
    """Member index, -1 for none."""
    to_member: int
    """Member index, -1 for none."""
    without_s: float | None
    """Drain time of the group without the move.

    None without capacities, and where the partition had no owner or gets none: there is nothing to compare with.
    """
    saves_record_s: float | None
    """Lag area that the move saves within a day, record-seconds."""


def report(group: Group, assignment: Assignment) -> AssignmentReport:
    """The figures of an assignment of `group`.

    The gains of moves do not add up: of two moves that only help together, each gains what both do.
    """
    member, owner, n = assignment.member, group.owner, group.n_members
    held, owned = member >= 0, owner >= 0
    return AssignmentReport(
        partitions_before=np.bincount(owner[owned], minlength=n),
        partitions_after=np.bincount(member[held], minlength=n),
        lag_before=sums_held(group.lag, owner, n),
        lag_after=sums_held(group.lag, member, n),
        member_s_before=member_drain_s(group, owner),
        member_s_after=member_drain_s(group, member),
        before_s=drain_s(group, owner),
        after_s=drain_s(group, member),
        bound=group_bound(group),
        moves=_moves(group, member),
    )


def _moves(group: Group, member: Int32s) -> tuple[MoveReport, ...]:
    # A holder that no longer subscribes is a move, too, but only what its owner could keep has an alternative.
    holder = group.ownership.holder
    partitions = np.nonzero(member != holder)[0]
    # NaN stands for "nothing to compare with" until it becomes None.
    without_s, saves_record_s = np.full(len(partitions), np.nan), np.full(len(partitions), np.nan)
    compared = (member[partitions] >= 0) & (group.owner[partitions] >= 0)
    if group.capacity is not None and compared.any():
        without_s[compared], saves_record_s[compared] = _without_each(
            group, group.capacity, member, partitions[compared].astype(np.int32)
        )
    return tuple(
        MoveReport(
            partition=partition,
            from_member=int(holder[partition]),
            to_member=int(member[partition]),
            without_s=None if np.isnan(seconds) else seconds,
            saves_record_s=None if np.isnan(records) else records,
        )
        for partition, seconds, records in zip(
            partitions.tolist(), without_s.tolist(), saves_record_s.tolist(), strict=True
        )
    )


def _without_each(
    group: Group, capacity: Floats, member: Int32s, partitions: Int32s
) -> tuple[Floats, Floats]:
    """Drain time of the group without each move, and the record-seconds that the move saves."""
    n = group.n_members
    loads = MemberLoads(
        lag=sums_held(group.lag, member, n),
        rate=sums_held(group.rate, member, n),
        capacity=capacity,
    )
    moved = MovedPartitions(
        lag=group.lag[partitions].astype(np.float64),
        rate=group.rate[partitions],
        from_member=group.owner[partitions],
        to_member=member[partitions],
    )
    # Only areas need a horizon. Times are the true ones: a report does not hide that a member never drains.
    model = CostModel(horizon_s=_DAY_S, floor_s=0.0)
    without = counterfactuals(loads, moved, drain_s=_drain_s, lag_area=model.lag_area)
    return without.slowest_s(), without.lag_area


def _drain_s(lag: Floats, rate: Floats, capacity: Floats) -> Floats:
    return times_s(lag, capacity - rate)
