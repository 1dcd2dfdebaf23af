"""Where the search starts: everything with its owner; what cannot stay there, or has none, is dealt out."""

import numpy as np

from assignor.evaluation.drain.cost import Price
from assignor.evaluation.drain.time import summed
from assignor.model.arrays import Bools, Floats, Int32s
from assignor.model.group import Group
from assignor.strategies.lag_sticky.options import Terms
from assignor.strategies.lag_sticky.placement import Dealer
from assignor.strategies.lag_sticky.problem import Problem
from assignor.strategies.sticky import strategy as sticky

_DAY_S = 86_400.0
_MINUTE_S = 60.0


def problem_of(group: Group, terms: Terms, capacity: Floats, bound_s: float) -> Problem:
    """The problem of a group, were its capacities these.

    Moves out of an owner that no longer subscribes or that holds more than `count_cap`, and the moves that
    even counts take, have to be made in any case: they are part of the start and cost nothing.

    Args:
        group: Who owns what.
        terms: What the operator said.
        capacity: Records per second of each member.
        bound_s: No assignment drains the group sooner; may be `inf`.
    """
    # A group that can be drained is compared by true times, however long they are.
    horizon_s = max(_DAY_S, 4 * bound_s) if np.isfinite(bound_s) else _DAY_S
    weight = group.lag + group.rate * min(max(bound_s, _MINUTE_S), horizon_s)
    start, cap = _start(group, terms, capacity, weight)
    home = np.where(group.owner == start, group.owner, -1)
    held = start >= 0
    n = group.n_members
    may_read = None if group.has_equal_subscriptions() else group.subscriptions.matrix()
    return Problem(
        group=group,
        terms=terms,
        price=Price(horizon_s=horizon_s, floor_s=terms.floor_s),
        capacity=capacity,
        lag=np.append(group.lag.astype(np.float64), 0.0),
        rate=np.append(group.rate, 0.0),
        home=np.append(home, -1).astype(np.int32),
        start=np.append(start, -1).astype(np.int32),
        start_lag=summed(group.lag[held], by=start[held], n=n),
        start_rate=summed(group.rate[held], by=start[held], n=n),
        start_count=np.bincount(start[held], minlength=n),
        cap=cap,
        may_read=may_read,
        set_of=np.append(group.subscriptions.set_of_topic[group.topics.topic_of], -1).astype(np.int32),
    )


def _start(group: Group, terms: Terms, capacity: Floats, weight: Floats) -> tuple[Int32s, int]:
    """Member of each partition, and the cap on counts that holds."""
    if terms.counts == "even":
        return sticky.assign(group).member, group.n_partitions
    readable = group.readable()
    cap = _cap(group, terms, readable)
    kept = _within_cap(group, weight, cap)
    dealer = Dealer(group, kept, capacity, weight, cap)
    dealt = dealer.deal(np.nonzero(readable & (kept < 0))[0])
    if dealt is not None:
        return dealt, cap
    # Dealing met a partition whose readers are all full. If any assignment keeps to the cap, the most even
    # one does, for its largest count is the least possible.
    start = sticky.assign(group).member
    return start, max(cap, int(np.bincount(start[start >= 0]).max()))


def _cap(group: Group, terms: Terms, readable: Bools) -> int:
    """`count_cap`, or what it must be at least."""
    if terms.count_cap is None or group.n_members == 0:
        return group.n_partitions
    return max(terms.count_cap, -(-int(readable.sum()) // group.n_members))


def _within_cap(group: Group, weight: Floats, cap: int) -> Int32s:
    """Owners, without the lightest partitions of those that own more than `cap`."""
    owner = group.owner
    owned = np.bincount(owner[owner >= 0], minlength=group.n_members)
    over = owned > cap
    if not over.any():
        return owner
    pids = np.nonzero((owner >= 0) & over[owner])[0]
    pids = pids[np.lexsort((-weight[pids], owner[pids]))]
    first = np.searchsorted(owner[pids], np.arange(group.n_members))
    rank = np.arange(len(pids)) - first[owner[pids]]
    kept: Int32s = owner.copy()
    kept[pids[rank >= cap]] = -1
    return kept
