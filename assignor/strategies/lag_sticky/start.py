"""The start of the search: every partition with its owner; those that cannot stay, or have none, are placed."""

import numpy as np

from assignor.evaluation.drain.cost import CostModel
from assignor.evaluation.drain.time import sums_held
from assignor.model.arrays import Bools, Floats, Int32s
from assignor.model.group import Group
from assignor.strategies.lag_sticky.options import Options
from assignor.strategies.lag_sticky.placement import Placement
from assignor.strategies.lag_sticky.problem import Problem
from assignor.strategies.sticky import strategy as sticky
from assignor.strategies.sticky.equal import level_over

_DAY_S = 86_400.0
_MINUTE_S = 60.0
_LATEST_FLOORS = 8
"""A horizon is at least a day and four times the bound: with a floor of an eighth of a day it is a day."""


def nobody_is_late(group: Group, options: Options, capacity: Floats) -> bool:
    """Whether nothing has to be placed and no member is late, so that neither bound nor search can change anything.

    Then the group drains by the floor, which is far before the horizon, whatever the bound is. Most groups are like
    that most of the time. False if a search is needed all the same: with limits on counts, or with a budget for every
    partition, for which the answers of other strategies are compared.
    """
    owned, placeable = group.owner >= 0, group.placeable()
    is_limited = options.counts == "even" or options.count_cap is not None
    is_compared = options.budget(int(placeable.sum())) >= int(owned.sum())
    if is_limited or is_compared or _LATEST_FLOORS * options.floor_s > _DAY_S:
        return False
    if (placeable & ~owned).any():
        return False
    lag, rate = (sums_held(values, group.owner, group.n_members) for values in (group.lag, group.rate))
    model = CostModel(horizon_s=_DAY_S, floor_s=options.floor_s)
    # One by one: for a few members, and where one of the first is late, a fraction of the time of arrays.
    each = zip(lag.tolist(), rate.tolist(), capacity.tolist(), strict=True)
    return not any(model.load_of_one_s(*of_member) > options.floor_s for of_member in each)


def build_problem(group: Group, options: Options, capacity: Floats, bound_s: float) -> Problem:
    """The problem of a group whose members have these capacities.

    Some moves have to be made in any case: out of an owner that no longer subscribes or that holds more than
    `count_cap`, and those that even counts take. They are part of the start and cost nothing.

    Args:
        group: The group with its owners.
        options: Limits and move costs.
        capacity: Records per second of each member.
        bound_s: No assignment drains the group sooner; may be `inf`.
    """
    # A horizon beyond the bound compares groups that can be drained by their true times, however long they are.
    horizon_s = max(_DAY_S, 4 * bound_s) if np.isfinite(bound_s) else _DAY_S
    # Weights at about the time when the group can be drained: with the lag alone, a partition that fills fast
    # would count for nothing.
    weight = group.lag + group.rate * min(max(bound_s, _MINUTE_S), horizon_s)
    start, cap = _start(group, options, capacity, weight)
    current_owner = np.where(group.owner == start, group.owner, -1)
    held = start >= 0
    n = group.n_members
    may_read = None if group.has_equal_takers() else group.takers.matrix()
    return Problem(
        group=group,
        options=options,
        cost_model=CostModel(horizon_s=horizon_s, floor_s=options.floor_s),
        capacity=capacity,
        lag=np.append(group.lag.astype(np.float64), 0.0),
        rate=np.append(group.rate, 0.0),
        current_owner=np.append(current_owner, -1).astype(np.int64),
        start=np.append(start, -1).astype(np.int32),
        start_lag=sums_held(group.lag, start, n),
        start_rate=sums_held(group.rate, start, n),
        start_count=np.bincount(start[held], minlength=n),
        cap=cap,
        may_read=may_read,
        set_of=np.append(group.subscriptions.set_of_topic[group.topics.topic_of], -1).astype(np.int32),
        fixed=group.is_fixed() if group.is_constrained() else None,
    )


def _start(group: Group, options: Options, capacity: Floats, weight: Floats) -> tuple[Int32s, int]:
    """Member of each partition, and the cap on counts that can be kept."""
    if options.counts == "even":
        return sticky.assign(group).member, group.n_partitions
    placeable = group.placeable()
    cap = _cap(group, options, placeable)
    kept = _within_cap(group, weight, cap)
    unowned = np.nonzero(placeable & (kept < 0))[0]
    if len(unowned) == 0:
        return kept, cap
    placed = Placement(group, kept, capacity, weight, cap).place(unowned)
    if placed is not None:
        return placed, cap
    # The placement met a partition whose readers are all at the cap. If any assignment keeps to the cap, the
    # most even one does, because its largest count is the least possible.
    start = sticky.assign(group).member
    counts = np.bincount(start[start >= 0], minlength=group.n_members)
    # Members that hold nothing but what is fixed are above the cap if they must be, and get nothing.
    has_free = np.ones(group.n_members, np.bool_)
    if group.is_constrained():
        has_free = np.bincount(start[(start >= 0) & ~group.is_fixed()], minlength=group.n_members) > 0
    return start, max(cap, int(counts[has_free].max(initial=0)))


def _cap(group: Group, options: Options, placeable: Bools) -> int:
    """`count_cap`, raised until every partition has a place if all members may have all partitions."""
    n = group.n_members
    if options.count_cap is None or n == 0:
        return group.n_partitions
    if not group.is_constrained():
        return max(options.count_cap, -(-int(placeable.sum()) // n))
    fixed = group.is_fixed()
    base = np.bincount(group.owner[fixed], minlength=n)
    level, extras = level_over(base, int((placeable & ~fixed).sum()))
    return max(options.count_cap, level + (extras > 0))


def _within_cap(group: Group, weight: Floats, cap: int) -> Int32s:
    """Owners, without the lightest partitions of those that own more than `cap`; what is fixed stays."""
    owner = group.owner
    owned = np.bincount(owner[owner >= 0], minlength=group.n_members)
    over = owned > cap
    if not over.any():
        return owner
    partitions = np.nonzero((owner >= 0) & over[owner])[0]
    loose = ~group.is_fixed()
    partitions = partitions[np.lexsort((-weight[partitions], loose[partitions], owner[partitions]))]
    first = np.searchsorted(owner[partitions], np.arange(group.n_members))
    rank = np.arange(len(partitions)) - first[owner[partitions]]
    kept: Int32s = owner.copy()
    kept[partitions[(rank >= cap) & loose[partitions]]] = -1
    return kept
