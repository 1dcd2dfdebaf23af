"""Hopeless partitions, set aside so that they do not hide what a plan can improve.

A member that holds a hopeless partition never drains, whatever is planned. In the objective it would come first, as the
slowest member, and use up the moves and the gain that would help others. So the group is planned without it: such a
member keeps what it holds, and is given nothing.
"""

from dataclasses import replace

import numpy as np

from assignor.evaluation.drain.cost import CostModel
from assignor.evaluation.drain.hopeless import hopeless, lost_members
from assignor.evaluation.drain.time import sums_held
from assignor.model.arrays import Bools, Floats, Int32s
from assignor.model.claims import Ownership
from assignor.model.group import Group
from assignor.strategies.lag_sticky.options import Options
from assignor.strategies.lag_sticky.start import build_problem

_WORTH_MOVING = 0.1
"""Share of what a member with a hopeless partition leaves unread that the rest of its partitions must take from it."""


def curable_part(group: Group, options: Options, capacity: Floats) -> tuple[Group, Bools]:
    """The group with its lost members closed and their partitions without weight, and which members are lost.

    Hopeless partitions without an owner are placed first, where they do least harm. Returns the group itself if
    no member is lost, and under limits on counts, which concern every member.
    """
    lost = np.zeros(group.n_members, np.bool_)
    if group.capacity is None or options.counts == "even" or options.count_cap is not None:
        return group, lost
    unowned = group.owner < 0
    cannot = hopeless(group, capacity)
    lost = lost_members(group, group.owner, capacity)
    if not lost.any() and not (cannot & unowned).any():
        return group, lost
    if unowned.any():
        start = build_problem(group, options, capacity, bound_s=np.inf).start[:-1]
        lost = lost_members(group, start, capacity)
        # Others may have what they drain; what only lost members may have goes to one of them.
        left = group.takers.without(lost).subscriber_counts() > 0
        placed = unowned & (cannot | ~group.topics.by_partition(left))
        group = _held_by(group, np.where(placed, start, group.ownership.holder))
    aside = (group.owner >= 0) & lost[group.owner]
    curable = replace(
        group,
        lag=np.where(aside, 0, group.lag),
        rate=np.where(aside, 0.0, group.rate),
        closed=lost if group.closed is None else lost | group.closed,
    )
    return curable, lost


def rescued(
    group: Group, member: Int32s, lost: Bools, *, options: Options, capacity: Floats, moves_left: int
) -> Int32s:
    """Give partitions that share a member with a hopeless one to others, the busiest first; return the members of all.

    A member reads its partitions in turn, so partitions that keep up slow the hopeless one down. They go where
    they make nobody later than the slowest of those that drain is in any case, if that matters to what is left
    unread (`_WORTH_MOVING`). A member that holds nothing takes what it drains.

    Args:
        group: The whole group.
        member: Member of each partition of the plan for the curable part.
        lost: Whether each member is lost.
        options: Options of the strategy.
        capacity: Records per second of each of N members.
        moves_left: Most partitions to move.
    """
    n = group.n_members
    model = CostModel(horizon_s=86_400.0, floor_s=options.floor_s)
    lag, rate = (sums_held(values, member, n) for values in (group.lag, group.rate))
    times_s = model.load_s(lag, rate, capacity)
    drains = ~lost & (rate < capacity)
    limit_s = max(options.floor_s, float(times_s[drains].max(initial=0.0)))
    is_free = np.bincount(member[member >= 0], minlength=n) == 0
    is_open = drains if group.closed is None else drains & ~group.closed
    beside = (member >= 0) & lost[member] & ~hopeless(group, capacity) & ~group.is_fixed()
    beside &= group.owner == member
    unread = np.maximum(rate - capacity, 0.0)
    matters = sums_held(np.where(beside, group.rate, 0.0), member, n) >= _WORTH_MOVING * unread
    beside &= matters[member] & (group.rate > 0)
    result: Int32s = member.copy()
    order = np.nonzero(beside)[0]
    for partition in order[np.argsort(-group.rate[order], kind="stable")].tolist():
        if moves_left <= 0:
            break
        takers = group.takers.of_topic(int(group.topics.topic_of[partition]))
        takers = takers[is_open[takers]]
        after_s = model.load_s(
            lag[takers] + group.lag[partition], rate[takers] + group.rate[partition], capacity[takers]
        )
        can = rate[takers] + group.rate[partition] < capacity[takers]
        can &= (after_s <= limit_s) | (is_free[takers] & (after_s < model.horizon_s))
        if not can.any():
            continue
        taker = int(takers[np.where(can, after_s, np.inf).argmin()])
        result[partition] = taker
        lag[taker] += group.lag[partition]
        rate[taker] += group.rate[partition]
        moves_left -= 1
    return result


def _held_by(group: Group, holder: Int32s) -> Group:
    ownership = Ownership(
        holder=holder, contested=group.ownership.contested, generation=group.ownership.generation
    )
    return replace(group, ownership=ownership)
