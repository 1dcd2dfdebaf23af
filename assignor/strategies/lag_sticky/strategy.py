"""Strategy `lag-sticky`: the assignment that drains a group soonest with the fewest moves.

Objective: the time until the slowest member has drained, plus a cost per move; then the same for the next slowest
member, and so on. A member with capacity mu records/s that holds L records of lag and receives A records/s has
drained after L / (mu - A) seconds.

A solution is accepted only if the lag area that it saves (lag summed over time, record-seconds) is larger than the cost
of its moves: no member reads a partition while it changes its member. So a group stays as it is unless there is
something to gain, and the strategy gives the same answer twice for the same state.

Method:

1. *Start* (`start`, `placement`). Every partition stays with its owner; those without one are placed, heaviest first.
2. *Packing to a deadline* (`search.packing`). Deadlines are tried from late to early. A member that misses a
   deadline evicts the fewest partitions it can; these are packed, heaviest first, into the residual capacity of the
   others, if need be by evicting lighter ones.
3. *Local search* (`search.local_search`). The best packings are improved step by step: the slowest member loses a
   partition by a move, a swap or an ejection chain through a third member.
4. *Exact search* (`search.exact`). In a group of a few partitions everything is tried that could be better. In a
   larger one the slowest member shares out what it holds with one or two others in the best way, again and again,
   also from starts that place everything anew (`search.lpt`), if the budget allows it.
5. *Pruning* (`pruning`) takes back moves that gain too little; `solve.pays` decides about the whole.

A partition in which more arrives than any of its readers drains is *hopeless*: it keeps its member, and the group is
planned without the two (`hopeless`). No member that drains is loaded until it never does (`harm`).

`evaluation.drain.bound` gives a time that no assignment can beat, so that the search knows when to stop.

Example: three members drain 10 records/s each. m0 owns partitions 0, 1 and 2 with 900, 800 and 700 records of lag, m1
and m2 own one with 10 records each. m0 has drained after 240 s, and no assignment needs less than 90 s, for
partition 0. A deadline of 90 s allows every member 900 records. m0 keeps its heaviest partition and evicts 1 and 2,
the fewest that are enough; each fits on one of the others. After these two moves all have drained within 90 s.

Source: deadline and fewest evictions after Aggarwal, Motwani, Zhu, The load rebalancing problem (2006); heaviest
first after Graham, Bounds on multiprocessing timing anomalies (1969); ejection chains after Glover, Ejection
chains, reference structures and alternating path methods for traveling salesman problems (1996); exact search of
parts after Shaw, Using constraint programming and local search methods to solve vehicle routing problems (1998).
"""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from assignor.evaluation.drain.bound import LowerBound, lower_bound, not_taken
from assignor.evaluation.drain.time import sums_held
from assignor.evaluation.drain.words import obstacles
from assignor.evaluation.drain.work import Work
from assignor.model.arrays import Bools, Floats, Int32s
from assignor.model.assignment import Assignment
from assignor.model.claims import Ownership
from assignor.model.group import Group
from assignor.strategies import lag_aware
from assignor.strategies.lag_sticky.diagnostics import remarks, remarks_at_rest
from assignor.strategies.lag_sticky.hopeless import curable_part, rescued
from assignor.strategies.lag_sticky.idle_members import idle_members
from assignor.strategies.lag_sticky.options import Options
from assignor.strategies.lag_sticky.solve import share_with_idle, solve
from assignor.strategies.lag_sticky.start import nobody_is_late

_ASSUMED_CAPACITY = 1000.0
"""Records/s of a member where no capacity is known; an ordinary consumer does more."""
_MOST_SOLVES = 8
_SCOPES: tuple[lag_aware.Scope, ...] = ("topic", "group")


def assign(group: Group, **given: Any) -> Assignment:
    """The target: every partition with a subscriber has a member.

    Promised: the target drains the group no later than its current owners do; members that drain now drain then, unless
    partitions have to be placed; no more than `max_moves` partitions leave an owner that may keep them; no member has
    more than `count_cap` if that is possible at all. `count_cap` and `counts` have priority: the moves that they force
    come in addition to `max_moves`, and may drain later. With `max_moves` for every partition, and the options of cost,
    floor and gain at 0, the target is no later than that of `lag-aware` or the sticky strategies; once it is applied,
    the strategy proposes no move, if capacities are known. Assumed ones depend on what the busiest owner receives
    (`_capacity`), so the applied target may be looked at with others. With a smaller `max_moves` it may take several
    plans to get there.

    What is fixed is load on its owner and stays there, with what is over `count_cap` too. The promises hold among the
    assignments that leave it in place.

    Args:
        group: Without capacities every member is taken to be equally fast.
        given: The fields of `options.Options`, all of them.
    """
    options = Options(**given)
    target, is_around_lost = _answer(group, options)
    if not is_around_lost or options.budget(group.n_partitions) < group.n_partitions:
        return target
    # The first plan does not see the load that other members take over from the owner of a hopeless partition. With a
    # move allowed for every partition, plan again until the answer is stable, as `_solved` does.
    member = target.member
    for _ in range(_MOST_SOLVES):
        again = _answer(_applied(group, member), options)[0].member
        if np.array_equal(again, member):
            break
        member = again
    return target if np.array_equal(member, target.member) else replace(target, member=member)


def _answer(group: Group, options: Options) -> tuple[Assignment, bool]:
    """One plan, and whether it had to leave out a hopeless part of the group."""
    capacity = _capacity(group)
    is_at_rest = nobody_is_late(group, options, capacity)
    owner = group.owner
    # Most groups are at rest most of the time: they are left alone before anything costly is computed.
    if (
        is_at_rest
        and not idle_members(group, np.bincount(owner[owner >= 0], minlength=group.n_members)).any()
    ):
        at_rest = Assignment.complete(group, owner.copy(), remarks=remarks_at_rest(group, options, capacity))
        return at_rest, False
    work = Work.of(group, capacity)
    if len(work.partitions) == 0:
        return Assignment.complete(group, np.full(group.n_partitions, -1, np.int32)), False
    if is_at_rest:
        shared = share_with_idle(group, options, work)
        words = remarks(group, work, None, shared, shared.member)
        return Assignment.complete(group, shared.member, remarks=words), False
    curable, lost = curable_part(group, options, capacity)
    if lost.any():
        return _around_lost(group, curable, lost, options, work), True
    bound = lower_bound(work)
    solved = _solved(group, options, work, bound)
    # It is no bound of the group if capacities are assumed, or if a partition has to stay without a member.
    is_of_group = group.capacity is not None and not_taken(group) is None
    return replace(solved, bound_s=bound.time_s) if is_of_group else solved, False


def _solved(group: Group, options: Options, work: Work, bound: LowerBound) -> Assignment:
    # Bounded before the search, which stops as soon as it meets the bound.
    by_lag_aware = cache(lambda: [lag_aware.assign(group, scope=scope).member for scope in _SCOPES])
    result = first = solve(group, options, work, bound, by_lag_aware)
    # Solving again from the answer makes it stable: asked once more, the strategy then finds no further move.
    # With a smaller budget that is not allowed, because the moves of several solves would add up.
    if options.budget(len(work.partitions)) >= len(work.partitions):
        for _ in range(_MOST_SOLVES):
            if np.array_equal(result.member, result.problem.group.owner):
                break
            result = solve(_applied(group, result.member), options, work, bound, by_lag_aware)
    return Assignment.complete(
        group, result.member, remarks=remarks(group, work, bound, first, result.member)
    )


def _around_lost(group: Group, curable: Group, lost: Bools, options: Options, work: Work) -> Assignment:
    """Plan the part that some assignment drains, and then what falls behind because of hopeless partitions."""
    rest = Work.of(curable, work.capacity)
    planned = _solved(curable, options, rest, lower_bound(rest))
    moved = int(((group.owner >= 0) & (planned.member != group.owner)).sum())
    left = options.budget(len(work.partitions)) - moved
    member = rescued(group, planned.member, lost, options=options, capacity=work.capacity, moves_left=left)
    sentences = obstacles(group, lower_bound(work))
    if np.array_equal(member, planned.member):
        sentences += planned.remarks
    return Assignment.complete(group, member, remarks=sentences)


def _capacity(group: Group) -> Floats:
    """Records per second of each member.

    If none is known, all are equal and twice as fast as the busiest member has to be, so that arrivals alone do not
    overload it.
    """
    if group.capacity is not None:
        return group.capacity
    received = sums_held(group.rate, group.owner, group.n_members)
    even_share = float(group.rate.sum()) / max(group.n_members, 1)
    busiest = max(received.max(initial=0.0), group.rate.max(initial=0.0), even_share)
    return np.full(group.n_members, max(_ASSUMED_CAPACITY, 2 * busiest))


def _applied(group: Group, member: Int32s) -> Group:
    """The group once every member holds its partitions of the target."""
    ownership = Ownership(
        holder=member,
        contested=np.zeros(group.n_partitions, np.bool_),
        generation=np.zeros(group.n_partitions, np.int32),
    )
    fixed = group.is_fixed() if group.is_constrained() else None
    return replace(group, ownership=ownership, fixed=fixed)
