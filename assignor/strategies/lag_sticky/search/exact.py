"""Exact search inside the heuristic one: of all of a small group, or of what a few members of a larger one hold."""

from collections.abc import Iterator
from itertools import chain, combinations

import numpy as np

from assignor.evaluation.drain.exact import FixedOnMembers, SmallAnswer, SmallProblem, soonest
from assignor.model.arrays import Floats, Int64s
from assignor.strategies.lag_sticky.problem import Problem, Solution

# Rates are not known to a thousandth; a search for smaller gains finds noise.
_NEAR = 1 + 1e-3
_WHOLE_PARTITIONS = 12
_WHOLE_MEMBERS = 6
_WHOLE_STEPS = 10_000
_PART_PARTITIONS = 14
_PART_STEPS = 1_500
# Counted in steps and never in seconds: the same group has the same answer on a slow machine.
_PARTS_STEPS = 10_000
_STEPS_TO_SET_UP = 60
"""In all for one solution: some 50 ms. What it takes to set up a part counts as steps, too."""
_MOST_MEMBERS = 32
_MOST_COMPANIONS = 6
"""How many of the least loaded members are also taken two at a time."""


def is_small(problem: Problem) -> bool:
    """Whether the whole group can be searched exhaustively."""
    loose = int((problem.without_fixed(problem.start[:-1]) >= 0).sum())
    return loose <= _WHOLE_PARTITIONS and problem.n_members <= _WHOLE_MEMBERS and _is_free(problem)


def can_take_parts(problem: Problem) -> bool:
    """Whether the group has few enough members to search parts of it exhaustively."""
    return 1 < problem.n_members <= _MOST_MEMBERS and _is_free(problem)


def tried_out(problem: Problem, solution: Solution, budget: int, enough_s: float) -> tuple[Solution, bool]:
    """The solution of least cost, or the given one, and whether everything was tried."""
    members = np.arange(problem.n_members)
    found, answer = _soonest_on(problem, solution, members, budget, (enough_s, _WHOLE_STEPS))
    return found, answer.is_complete


def tried_in_parts(problem: Problem, solution: Solution, budget: int, enough_s: float) -> Solution:
    """The solution after the slowest member and one or two others have shared out what they hold in the best way.

    Again and again, until nothing relieves the slowest member. A large neighbourhood, in each of which all moves,
    swaps and chains of any length between the members are tried at once.

    Source: Shaw, Using constraint programming and local search methods to solve vehicle routing problems (1998).
    """
    steps_left = _PARTS_STEPS
    while steps_left > 0:
        loads_s = solution.member_loads_s
        slowest = _slowest(problem, solution, loads_s)
        if loads_s[slowest] <= enough_s * _NEAR:
            return solution
        for members in _companies(problem, solution, loads_s, slowest):
            found, answer = _soonest_on(problem, solution, members, budget, (enough_s, _PART_STEPS))
            steps_left -= answer.steps + _STEPS_TO_SET_UP
            if found is not solution:
                # Loads have changed, and with them the slowest member and the members that may help it.
                solution = found
                break
            if steps_left <= 0:
                return solution
        else:
            return solution
    return solution


def _is_free(problem: Problem) -> bool:
    return problem.options.counts == "free"


def _slowest(problem: Problem, solution: Solution, loads_s: Floats) -> int:
    """The slowest member, or with something fixed the slowest of those that have anything to share."""
    if problem.fixed is None:
        return int(loads_s.argmax())
    return int(np.where(_loose_count(problem, solution) > 0, loads_s, -1.0).argmax())


def _loose_count(problem: Problem, solution: Solution) -> Int64s:
    return problem.counts(solution) - problem.fixed_on_members()[2]


def _companies(problem: Problem, solution: Solution, loads_s: Floats, slowest: int) -> Iterator[Int64s]:
    """The slowest member with each of the others, then with two of the least loaded; few partitions together."""
    count = _loose_count(problem, solution)
    # The least loaded have the most to give; the stable sort makes ties a matter of the index alone.
    others = [m for m in np.argsort(loads_s, kind="stable").tolist() if m != slowest]
    companies = chain(((m,) for m in others), combinations(others[:_MOST_COMPANIONS], 2))
    for company in companies:
        members = np.array(sorted((slowest, *company)))
        if int(count[members].sum()) <= _PART_PARTITIONS:
            yield members


def _soonest_on(
    problem: Problem, solution: Solution, members: Int64s, budget: int, limits: tuple[float, int]
) -> tuple[Solution, SmallAnswer]:
    """The solution when these members share out what they hold, the given one when that gains nothing."""
    member = problem.member(solution)
    partitions = np.nonzero(np.isin(problem.without_fixed(member), members))[0]
    small = _part(problem, partitions, members)
    moved = (small.owner, np.searchsorted(members, member[partitions]).tolist())
    moves_inside = sum(owner not in {-1, at} for owner, at in zip(*moved, strict=True))
    enough_s, most_steps = limits
    loads_s = solution.member_loads_s[members]
    # What is known bounds the search from above (branch and bound): it ends where it cannot beat this.
    cost_s = max(float(loads_s.max()), enough_s) + problem.options.move_cost_s * moves_inside
    answer = soonest(
        small,
        known_s=cost_s,
        most_moves=budget - solution.moves + moves_inside,
        enough_s=enough_s,
        most_steps=most_steps,
    )
    if answer.member is None:
        return solution, answer
    member[partitions] = members[answer.member]
    return problem.solution_of(member), answer


def _part(problem: Problem, partitions: Int64s, members: Int64s) -> SmallProblem:
    """The problem of these members, numbered from 0, and the partitions on them."""
    number = {m: i for i, m in enumerate(members.tolist())}
    return SmallProblem(
        lag=problem.lag[partitions].tolist(),
        rate=problem.rate[partitions].tolist(),
        may_read=[[number[m] for m in problem.readers_of(p) if m in number] for p in partitions.tolist()],
        # A member outside the part has the number after the last: the partition is away from it in any case.
        owner=[
            -1 if m < 0 else number.get(m, len(number)) for m in problem.current_owner[partitions].tolist()
        ],
        capacity=problem.capacity[members].tolist(),
        most_held=problem.cap,
        fixed=_fixed_on(problem, members),
        move_cost_s=problem.options.move_cost_s,
        model=problem.cost_model,
    )


def _fixed_on(problem: Problem, members: Int64s) -> FixedOnMembers | None:
    if problem.fixed is None:
        return None
    lag, rate, count = (of_member[members].tolist() for of_member in problem.fixed_on_members())
    return FixedOnMembers(lag=lag, rate=rate, count=count)
