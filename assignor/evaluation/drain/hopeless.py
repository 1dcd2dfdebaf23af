"""Partitions that no member can drain, and the members that hold one: no assignment helps them."""

import numpy as np

from assignor.evaluation.drain.time import sums_held
from assignor.model.arrays import Bools, Floats, Int32s
from assignor.model.group import Group


def hopeless(group: Group, capacity: Floats) -> Bools:
    """P entries: does more arrive in the partition than its owner, or any member that may be given it, drains.

    Args:
        group: The group.
        capacity: Records per second of each of N members.
    """
    takers = group.takers
    set_of_entry = np.repeat(np.arange(takers.n_sets), takers.set_sizes())
    fastest = np.zeros(takers.n_sets)
    np.maximum.at(fastest, set_of_entry, capacity[takers.members])
    best = fastest[takers.set_of_topic[group.topics.topic_of]]
    owned = group.owner >= 0
    best[owned] = np.maximum(best[owned], capacity[group.owner[owned]])
    return never_drains(group.lag.astype(np.float64), group.rate, best)


def lost_members(group: Group, member: Int32s, capacity: Floats) -> Bools:
    """N entries: does the member hold a hopeless partition, or more that is fixed than it drains.

    Args:
        group: The group.
        member: Member of each partition, -1 for none.
        capacity: Records per second of each of N members.
    """
    lost = np.zeros(group.n_members, np.bool_)
    holders = member[hopeless(group, capacity)]
    lost[holders[holders >= 0]] = True
    if group.is_constrained():
        fixed = np.where(group.is_fixed(), group.owner, np.int32(-1))
        lag, rate = (sums_held(values, fixed, group.n_members) for values in (group.lag, group.rate))
        lost |= never_drains(lag, rate, capacity)
    return lost


def never_drains(lag: Floats, rate: Floats, capacity: Floats) -> Bools:
    """Is the lag never drained: more arrives than the capacity, or just as much while there is lag."""
    never: Bools = (rate > capacity) | ((rate == capacity) & (lag > 0))
    return never
