"""Time that a group needs to drain its lag, and the balance of lag over its members.

Lag and arrivals are fluid: a member that drains mu records/s and holds partitions with L records of lag and
A records/s of arrivals has drained after L / (mu - A) seconds, in whatever order it reads them. Times need a
drain rate for every member; without one there is no time (unknown is never 0), only the imbalance.
"""

import numpy as np

from assignor.model.arrays import Bools, Floats, Int32s, Int64s
from assignor.model.group import Group


def member_drain_s(group: Group, member: Int32s) -> Floats | None:
    """Return the seconds until each member has drained its partitions.

    0 without lag; `inf` if the member never drains: arrivals are above its capacity, or equal to it
    with lag left. None if capacities are unknown.

    Args:
        group: Lag, rates and capacities.
        member: Member of each partition, -1 for none.
    """
    if group.capacity is None:
        return None
    lag = sums_held(group.lag, member, group.n_members)
    rate = sums_held(group.rate, member, group.n_members)
    return times_s(lag, group.capacity - rate)


def drain_s(group: Group, member: Int32s) -> float | None:
    """Return the seconds until the slowest member has drained, `inf` for never, None if capacities are unknown.

    A partition without a member (`undrained`) never drains.
    """
    times = member_drain_s(group, member)
    if times is None:
        return None
    # Lag that nobody reads is in no sum by member.
    return float(np.inf) if undrained(group, member).any() else float(times.max(initial=0.0))


def undrained(group: Group, member: Int32s) -> Bools:
    """Return P entries: True if the partition has lag or arrivals and a subscriber, but no member.

    Partitions without subscribers are not the group's work and do not count.
    """
    work: Bools = (group.lag > 0) | (group.rate > 0)
    return work & (member < 0) & group.readable()


def lag_imbalance(group: Group, member: Int32s) -> float:
    """(largest - smallest) / total member lag: 0 is even, 1 is all on one member; 0 without lag.

    Members without a subscription to any partition do not count: they can hold none.
    """
    held = member >= 0
    # A member that may read nothing would be the smallest whatever is assigned.
    lag = summed(group.lag[held], by=member[held], n=group.n_members)[group.readers()]
    total = float(lag.sum())
    return float(lag.max() - lag.min()) / total if total > 0 else 0.0


def sums_held(values: Int64s | Floats, member: Int32s, n: int) -> Floats:
    """Return the sum of `values` over the partitions of each of n members, without partitions of no member (-1)."""
    held = member >= 0
    return summed(values[held], by=member[held], n=n)


def summed(values: Int64s | Floats, *, by: Int32s | Int64s, n: int) -> Floats:
    """The sum of `values` for each index 0 .. n - 1 in `by`."""
    # Without values bincount counts in integers.
    return np.bincount(by, weights=values, minlength=n).astype(np.float64, copy=False)


def times_s(lag: Floats, spare: Floats) -> Floats:
    """Return lag over spare capacity: 0 without lag, `inf` if it never drains."""
    # Just enough capacity keeps up with arrivals for ever, but never reduces lag that is there.
    never = (spare < 0) | ((spare == 0) & (lag > 0))
    times = np.divide(lag, spare, out=np.zeros(len(lag)), where=spare > 0)
    times[never] = np.inf
    return times
