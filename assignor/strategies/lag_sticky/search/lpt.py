"""Starts without regard to owners: all that is not fixed is placed anew, longest processing time first (LPT)."""

import numpy as np

from assignor.model.arrays import Int32s
from assignor.strategies.lag_sticky.problem import Problem, Solution

_MOST_PARTITIONS = 256
_MOST_STARTS = 2
_TIMES = (0.0, 0.25, 1.0, 4.0, 64.0)
"""Multiples of the time that no assignment beats. A small one puts partitions with much lag first."""


def placed_anew(problem: Problem, bound_s: float, budget: int) -> list[Solution]:
    """The best of the solutions for several orders of the partitions; none for a large group or a small budget.

    The heaviest partition first, each goes to the reader that would have drained soonest with it, which is where
    unequal capacities and arrivals come in.

    Source: Graham, Bounds on multiprocessing timing anomalies (1969); for unequal capacities Gonzalez, Ibarra, Sahni,
    Bounds for LPT schedules on uniform processors (1977).
    """
    partitions = np.nonzero(problem.without_fixed(problem.start[:-1]) >= 0)[0]
    # Nearly everything moves: a smaller budget would be exceeded.
    owned = int((problem.current_owner[partitions] >= 0).sum())
    if len(partitions) > _MOST_PARTITIONS or budget * 2 < owned:
        return []
    readers = {p: problem.readers_of(p) for p in partitions.tolist()}
    # What can only be in one place comes first: the rest is placed around it.
    has_choice = np.array([len(readers[p]) > 1 for p in partitions.tolist()])
    solutions = []
    for share in _TIMES:
        at_s = min(share * max(bound_s, 1.0), problem.cost_model.horizon_s)
        weight = problem.lag[partitions] + problem.rate[partitions] * at_s
        order = np.lexsort((-weight, has_choice))
        member = _placed(problem, partitions[order].tolist(), readers)
        if member is not None:
            solutions.append(problem.solution_of(member))
    within = [solution for solution in solutions if solution.moves <= budget]
    return sorted(within, key=lambda solution: (solution.loads_s[0], solution.lag_area))[:_MOST_STARTS]


def _placed(problem: Problem, partitions: list[int], readers: dict[int, list[int]]) -> Int32s | None:
    """Member of each partition; None when one has no reader below the cap."""
    load_s, capacity = problem.cost_model.load_of_one_s, problem.capacity.tolist()
    lags, rates, held = (of_member.tolist() for of_member in problem.fixed_on_members())
    member: Int32s = problem.start[:-1].copy()
    for p in partitions:
        lag, rate = float(problem.lag[p]), float(problem.rate[p])
        open_readers = [m for m in readers[p] if held[m] < problem.cap]
        if not open_readers:
            return None
        owner = int(problem.current_owner[p])
        taker = min(
            open_readers, key=lambda m: (load_s(lags[m] + lag, rates[m] + rate, capacity[m]), m != owner, m)
        )
        member[p] = taker
        lags[taker] += lag
        rates[taker] += rate
        held[taker] += 1
    return member
