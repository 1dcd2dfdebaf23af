"""Strategy `lag-sticky`: the assignment that drains a group soonest with the fewest moves.

What it minimises: the time until the slowest member is drained, plus a price per move; then the same for the
next slowest member, and so on. A member that drains mu records/s and holds L records of lag and A records/s of
arrivals is through after L / (mu - A) seconds.

A plan is taken only if the lag area it saves (lag summed over time, record-seconds) is more than what its moves
cost: while a partition is on its way nobody reads it. So a group is left alone unless there is something to
win, and asked twice about the same state the strategy answers the same.

How: deadlines are tried from late to early. A member that misses a deadline gives up the fewest partitions it
can; those, heaviest first, go where there is room, if need be pushing lighter ones out. The best plans are then
improved step by step: from the slowest member one partition is given away, two are exchanged, or one is passed
on through a third member (`search`). What no assignment can beat is known from `evaluation.drain.bound`.

Source: deadline and fewest given up after Aggarwal, Motwani, Zhu, The load rebalancing problem (2006); heaviest
first after Graham, Bounds on multiprocessing timing anomalies (1969).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from assignor.evaluation.drain.bound import lower_bound
from assignor.evaluation.drain.time import summed
from assignor.evaluation.drain.work import Work
from assignor.model.arrays import Floats, Int32s
from assignor.model.assignment import Assignment
from assignor.model.claims import Ownership
from assignor.model.group import Group
from assignor.strategies.lag_sticky.diagnostics import remarks
from assignor.strategies.lag_sticky.options import OPTIONS, Terms
from assignor.strategies.lag_sticky.solve import play

__all__ = ["NAME", "OPTIONS", "assign"]

NAME = "lag-sticky"

_ASSUMED_CAPACITY = 1000.0
"""Records/s of a member where nothing is known of any; an ordinary consumer does more."""
_MOST_ROUNDS = 8


def assign(group: Group, **options: Any) -> Assignment:
    """The target: every partition with a subscriber has a member.

    Promised: it drains the group no later than its owners do; no more than `max_moves` partitions leave a
    member that may keep them; no member has more than `count_cap` if that is possible at all. `count_cap` and
    `counts` go before the rest: what they force to move comes on top of `max_moves` and may drain later. With
    `max_moves` for every partition, and moves, floor and gain at 0, it is no later than `lag-aware` or the
    sticky strategies, and once it is applied the strategy answers no move. With a smaller `max_moves` it may
    take several rounds to get there.

    Args:
        group: Without capacities every member is taken to be equally fast.
        options: See `lag_sticky.terms`.
    """
    terms = Terms(**options)
    work = Work.of(group, _capacity(group))
    if len(work.pid) == 0:
        return Assignment.complete(group, np.full(group.n_partitions, -1, np.int32))
    bound = lower_bound(work)
    played = first = play(group, terms, work, bound)
    if terms.budget(len(work.pid)) >= len(work.pid):
        for _ in range(_MOST_ROUNDS):
            if np.array_equal(played.member, played.problem.group.owner):
                break
            played = play(_settled(group, played.member), terms, work, bound)
    return Assignment.complete(
        group, played.member, remarks=remarks(group, work, bound, first, played.member)
    )


def _capacity(group: Group) -> Floats:
    """Records per second of each member.

    Where none is known all are equal, and fast enough for the busiest of them: what a member is given to read
    without falling behind it can read.
    """
    if group.capacity is not None:
        return group.capacity
    owned = group.owner >= 0
    received = summed(group.rate[owned], by=group.owner[owned], n=group.n_members)
    even_share = float(group.rate.sum()) / max(group.n_members, 1)
    busiest = max(received.max(initial=0.0), group.rate.max(initial=0.0), even_share)
    return np.full(group.n_members, max(_ASSUMED_CAPACITY, 2 * busiest))


def _settled(group: Group, member: Int32s) -> Group:
    """The group once everybody holds what it was given."""
    ownership = Ownership(
        holder=member,
        contested=np.zeros(group.n_partitions, np.bool_),
        generation=np.zeros(group.n_partitions, np.int32),
    )
    return replace(group, ownership=ownership)
