"""One solve of `lag-sticky`: the best solution that pays, starting from the current owners."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assignor.evaluation.drain.bound import LowerBound
from assignor.evaluation.drain.work import Work
from assignor.model.arrays import Int32s
from assignor.model.group import Group
from assignor.strategies.lag_sticky.harm import without_harm
from assignor.strategies.lag_sticky.idle_members import use_idle_members
from assignor.strategies.lag_sticky.options import Options
from assignor.strategies.lag_sticky.problem import Problem, Solution
from assignor.strategies.lag_sticky.pruning import prune_moves
from assignor.strategies.lag_sticky.search.search import Search
from assignor.strategies.lag_sticky.start import build_problem
from assignor.strategies.sticky import strategy as sticky


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SolveResult:
    """Result of one solve, and the part of it that is worth its moves."""

    problem: Problem
    budget: int
    """Most moves."""
    start: Solution
    best: Solution
    """The best solution, even if it does not pay; the start if there is no better one."""
    accepted: Solution
    """The best solution that pays, with work for idle members."""
    all_tried: bool
    """True if the search is exhaustive: if the best is the start, no solution within the budget costs less.

    False if the search found a better solution and a later step preferred the start.
    """

    @property
    def member(self) -> Int32s:
        """Member of each partition under the accepted solution."""
        return self.problem.member(self.accepted)


def share_with_idle(group: Group, options: Options, work: Work) -> SolveResult:
    """The result if no member is late (`start.nobody_is_late`): the start, with work for idle members."""
    problem = build_problem(group, options, work.capacity, bound_s=0.0)
    start, budget = problem.solution({}), options.budget(len(work.partitions))
    return SolveResult(
        problem=problem,
        budget=budget,
        start=start,
        best=start,
        accepted=use_idle_members(problem, start, budget),
        all_tried=True,
    )


def solve(
    group: Group, options: Options, work: Work, bound: LowerBound, by_lag_aware: Callable[[], list[Int32s]]
) -> SolveResult:
    """Search, prune moves that gain too little, and accept what pays.

    Args:
        group: The group with its owners.
        options: Options of the strategy.
        work: Its unread and arriving records.
        bound: Lower bound of its drain time.
        by_lag_aware: Computes the answers of `lag-aware`, which do not depend on owners, if the budget allows them.
    """
    problem = build_problem(group, options, work.capacity, bound.time_s)
    search = Search(problem, work, bound.time_s)
    start = best = accepted = found = search.start
    budget = options.budget(len(work.partitions))
    allowed = budget
    for allowed in _budgets(budget) if options.monotone == "yes" else [budget]:
        found = search.best(allowed)
        solution = prune_moves(problem, found, start)
        solution = _no_worse_than_others(problem, solution, allowed, by_lag_aware)
        if options.counts != "even" and options.count_cap is None:
            # Requested counts have priority over everything else.
            solution = without_harm(problem, solution, start)
        if best is start or problem.is_better(solution, best):
            best = solution
        # Accepted solutions never get later from one budget to the next: that is what `monotone` promises.
        improves = problem.is_better(solution, accepted) and solution.makespan_s <= accepted.makespan_s
        if (accepted is start or improves) and pays(problem, start, solution):
            accepted = solution
    return SolveResult(
        problem=problem,
        budget=budget,
        start=start,
        best=best,
        accepted=use_idle_members(problem, accepted, budget),
        all_tried=search.all_tried and allowed == budget and (found.moves == 0 or best.moves > 0),
    )


def pays(problem: Problem, start: Solution, solution: Solution) -> bool:
    """Whether the solution saves more lag area than its moves cost, plus the share `min_gain` of the area before.

    Only members whose partitions change count: the area of a member that no plan can help, which grows with the square
    of time, must not hide what the others gain. While no member is late but arrivals fill one, the area is
    that of catching up after a standstill of `floor_s`. With free moves and a `min_gain` of 0 there is nothing to
    weigh: what drains sooner pays.
    """
    before, after = lag_areas(problem, start, solution)
    # Both sides are record-seconds: of records that wait longer during the moves, and less long ever after.
    must_save = problem.options.min_gain * before + move_cost(problem, solution)
    return solution.moves == 0 or must_save == 0 or before - after > must_save


def lag_areas(problem: Problem, start: Solution, solution: Solution) -> tuple[float, float]:
    """Record-seconds of lag at the start and under the solution, of the members that the solution changes."""
    touched = np.unique(np.concatenate((problem.start[solution.partitions], solution.to_member)))
    # No member reads a partition without a member at the start; its lag counts at its new member.
    touched = touched[touched >= 0]
    is_late = start.makespan_s > problem.options.floor_s
    before, after = (
        (problem.lag_area if is_late else problem.standstill_area)(one)[touched].sum()
        for one in (start, solution)
    )
    return float(before), float(after)


def move_cost(problem: Problem, solution: Solution) -> float:
    """Record-seconds of lag that the moves of a solution cause while partitions are not read."""
    if solution.moves == 0:
        return 0.0
    owner = problem.current_owner[solution.partitions]
    moves = (owner >= 0) & (owner != solution.to_member)
    # An eager rebalance stops all partitions, whether they move or not.
    paused = problem.options.group_pause_s * float(problem.lag.sum())
    return paused + float(problem.pause_cost(solution.partitions[moves], solution.to_member[moves]).sum())


def _budgets(most: int) -> list[int]:
    """Powers of two up to `most`: those of a smaller budget are among those of a larger one."""
    return [2**k for k in range(most.bit_length())]


def _no_worse_than_others(
    problem: Problem, solution: Solution, budget: int, by_lag_aware: Callable[[], list[Int32s]]
) -> Solution:
    """The solution, or the answer of `lag-aware` or the sticky strategies if that is better still.

    Only with a budget for every partition, because these strategies do not limit their moves.
    """
    movable = int((problem.current_owner >= 0).sum())
    if budget < movable or problem.options.counts == "even":
        return solution
    cost_s = problem.options.move_cost_s
    for member in (*by_lag_aware(), sticky.assign(problem.group).member):
        other = problem.solution_of(member)
        is_sooner = other.makespan_s + cost_s * other.moves < solution.makespan_s + cost_s * solution.moves
        if is_sooner and int(problem.counts(other).max(initial=0)) <= problem.cap:
            solution = other
    return solution
