"""No plan takes from a member what it needs to keep up: a member that drains without the plan drains with it."""

from assignor.evaluation.drain.hopeless import never_drains
from assignor.model.arrays import Bools
from assignor.strategies.lag_sticky.problem import Problem, Solution


def without_harm(problem: Problem, solution: Solution, start: Solution) -> Solution:
    """The solution without moves due to which members that drain at the start never would; the start if none is left.

    Spreading an overload more evenly has that effect: instead of one late member there are two.
    """
    drained, found = ~_never(problem, start), solution
    while (harmed := drained & _never(problem, solution)).any():
        changes = solution.changes()
        # One partition of each member, that with the most arrivals: the rest may be just right.
        heaviest: dict[int, int] = {}
        for partition, member in changes.items():
            if harmed[member] and problem.rate[partition] >= problem.rate[heaviest.get(member, -1)]:
                heaviest[member] = partition
        for partition in heaviest.values():
            del changes[partition]
        solution = problem.solution(changes)
    if solution is found:
        return found
    is_better = problem.is_better(solution, start) and solution.makespan_s <= start.makespan_s
    return solution if is_better else start


def _never(problem: Problem, solution: Solution) -> Bools:
    return never_drains(solution.lag, solution.rate, problem.capacity)
