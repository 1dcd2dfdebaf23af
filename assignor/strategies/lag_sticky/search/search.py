"""The search for the best solution within a budget of moves."""

import numpy as np

from assignor.evaluation.drain.work import Work
from assignor.model.arrays import Int64s
from assignor.strategies.lag_sticky.problem import Changes, Problem, Solution
from assignor.strategies.lag_sticky.search.bounds import search_bounds
from assignor.strategies.lag_sticky.search.candidates import candidates_at
from assignor.strategies.lag_sticky.search.exact import (
    can_take_parts,
    is_small,
    tried_in_parts,
    tried_out,
)
from assignor.strategies.lag_sticky.search.fixed_bounds import bounds_over_fixed
from assignor.strategies.lag_sticky.search.local_search import Visited, improve
from assignor.strategies.lag_sticky.search.lpt import placed_anew
from assignor.strategies.lag_sticky.search.packing import DeadlinePacker
from assignor.strategies.lag_sticky.search.state import SearchState

# Deadlines of a sweep: enough that solutions of fewer moves are among them, then bisection towards the earliest.
_GRID = 9
_BISECTIONS = 6
_LEAST_SHARE = 1e-6
_NEAR = 1 + 1e-3
# Improving several solutions halves the distance to the best one in small groups; in large ones it costs too much.
_MOST_IMPROVED = 8
_MEMBERS_IMPROVED = 200
# Unowned partitions that every packing places anew; all of them would make packings of a fresh group as long as P.
_UNOWNED_PER_MEMBER = 2
_UNOWNED_AT_LEAST = 64


class Search:
    """A search prepared for one problem, to be run with one budget or several."""

    def __init__(self, problem: Problem, work: Work, bound_s: float) -> None:
        """Prepare the search.

        Args:
            problem: The group, its start and the options.
            work: What there is to read.
            bound_s: No assignment drains the group sooner; may be `inf`.
        """
        self._problem = problem
        self.start = problem.solution({})
        self.all_tried = False
        """Whether no solution drains the slowest member sooner than the last one found, including the cost of moves."""
        if work.fixed is None:
            self._bounds = search_bounds(problem, work, bound_s)
        else:
            self._bounds = bounds_over_fixed(problem, work, work.fixed, bound_s)
        self._floor_s = problem.options.floor_s
        # Candidates are ranked once, at the geometric mean of the earliest and latest deadline of interest.
        low_s = max(self._bounds.rest_s, self.start.makespan_s * _LEAST_SHARE)
        self._time_s = min(float(np.sqrt(low_s * self.start.makespan_s)), problem.cost_model.horizon_s)
        self._unowned = self._heaviest_unowned()
        self._optima: dict[Visited, Solution] = {}
        self._candidates = candidates_at(problem, self._unowned, self._time_s)

    @property
    def can_gain(self) -> bool:
        """Whether the start differs from the bound by more than rounding."""
        bounds, loads_s = self._bounds, self.start.loads_s
        if len(loads_s) == 0:
            return False
        least_s = np.append(bounds.outliers_s, bounds.rest_s)
        least_s[0] = bounds.all_s
        return bool((loads_s[: len(least_s)] > np.maximum(least_s, self._floor_s) * _NEAR).any())

    def best(self, budget: int) -> Solution:
        """The best solution found within this many moves; the start if none is better."""
        self.all_tried = not self.can_gain
        if self.all_tried:
            return self.start
        best = self.start
        enough_s = max(self._bounds.all_s, self._floor_s) * _NEAR
        # A packing changes counts at will, so with even counts the local search works from the start alone.
        packed = self._packed(budget) if self._problem.options.counts == "free" else []
        self._optima = {}
        for solution in [*self._shortlist(packed), self.start]:
            best = self._with_optimum(solution, best, budget)
            if best is not self.start and best.makespan_s <= enough_s:
                break
        return self._refined(best, budget)

    def _refined(self, best: Solution, budget: int) -> Solution:
        """The best solution after an exact search, of everything in a small group and of parts in a larger one."""
        problem = self._problem
        enough_s = max(self._bounds.all_s, self._floor_s)
        if is_small(problem):
            solution, self.all_tried = tried_out(problem, best, budget, enough_s)
            return self._with_rest(solution, best, budget)
        if not can_take_parts(problem) or best.loads_s[0] <= enough_s * _NEAR:
            return best
        for solution in (best, *placed_anew(problem, self._bounds.rest_s, budget)):
            best = self._with_rest(tried_in_parts(problem, solution, budget, enough_s), best, budget)
        return best

    def _with_rest(self, solution: Solution, best: Solution, budget: int) -> Solution:
        """The better one; an exact search looks at the slowest members only, so the rest is improved after it."""
        return best if solution is best else self._with_optimum(solution, best, budget)

    def _with_optimum(self, solution: Solution, best: Solution, budget: int) -> Solution:
        """The best of these two and of what local search makes of the solution."""
        best = self._better(solution, best, budget)
        return self._better(self._improved(solution, budget), best, budget)

    def _better(self, new: Solution, old: Solution, budget: int) -> Solution:
        # `is_better` ignores small differences and times within the floor; the group must not be later by them.
        is_allowed = new.moves <= budget and new.makespan_s <= self.start.makespan_s
        return new if is_allowed and self._problem.is_better(new, old) else old

    def _shortlist(self, solutions: list[Solution]) -> list[Solution]:
        """The best of the solutions, no two alike; fewer for a large group, where improving one takes longer."""
        cost_s = self._problem.options.move_cost_s
        ranked = sorted(solutions, key=lambda s: (s.makespan_s + cost_s * s.moves, s.lag_area, s.moves))
        few: list[Solution] = []
        for solution in ranked:
            if not few or solution.lag_area != few[-1].lag_area:
                few.append(solution)
        return few[: max(1, min(_MOST_IMPROVED, _MEMBERS_IMPROVED // self._problem.n_members))]

    def _improved(self, solution: Solution, budget: int) -> Solution:
        state = SearchState(self._problem, self._candidates, self._unowned, solution, self._time_s)
        overloaded = np.zeros(self._problem.n_members, np.bool_)
        changes = solution.changes()
        for partition in self._bounds.never.tolist():
            overloaded[changes.get(partition, int(self._problem.start[partition]))] = True
        if self._bounds.fixed_never is not None:
            overloaded |= self._bounds.fixed_never
        return improve(state, budget, overloaded, self._optima)

    def _packed(self, budget: int) -> list[Solution]:
        """Solutions that meet deadlines, first for all members and then for all but those of the outliers.

        A partition that takes very long even with a member to itself sets a deadline that hides what can be
        done for the rest. So the rest is swept once more, with the slowest left as early as they came out.
        """
        bounds, start = self._bounds, self.start
        packer = DeadlinePacker(self._problem, self._candidates, self._unowned, bounds, budget)
        solutions = self._sweep(packer, bounds.all_s, float(start.loads_s[0]), exempt_s=0.0)
        if bounds.n_outliers > 0:
            best = start
            for solution in solutions:
                best = self._better(solution, best, budget)
            high_s = float(best.loads_s[bounds.n_outliers])
            solutions += self._sweep(packer, bounds.rest_s, high_s, exempt_s=best.makespan_s)
        return [s for s in solutions if s.moves <= budget and s.makespan_s <= start.makespan_s]

    def _sweep(
        self, packer: DeadlinePacker, low_s: float, high_s: float, *, exempt_s: float
    ) -> list[Solution]:
        """Solutions for deadlines from the latest to the earliest, then closer to the earliest one met."""
        distinct: dict[bytes, Changes] = {}

        def is_met(time_s: float) -> bool:
            found = [
                self._problem.changed(one)
                for one in packer.packings(time_s * _NEAR, max(time_s * _NEAR, exempt_s))
            ]
            # Half of all packings, of one deadline or of several, come out alike.
            for one in found:
                distinct.setdefault(one.key, one)
            return len(found) > 0

        low_s = max(low_s, self._floor_s, high_s * _LEAST_SHARE)
        if high_s <= low_s * _NEAR:
            return []
        met_s, missed_s = high_s, low_s
        # A heuristic packing may miss one deadline and meet an earlier one, so the whole grid is tried.
        for time_s in np.geomspace(high_s, low_s, _GRID)[1:].tolist():
            if is_met(time_s):
                met_s, missed_s = time_s, low_s
            elif missed_s == low_s:
                missed_s = time_s
        for _ in range(_BISECTIONS):
            if met_s <= missed_s * _NEAR:
                break
            middle_s = float(np.sqrt(met_s * missed_s))
            met_s, missed_s = (middle_s, missed_s) if is_met(middle_s) else (met_s, middle_s)
        # Together, and not one by one: whether a deadline is met does not depend on figures.
        return self._problem.evaluated(list(distinct.values()))

    def _heaviest_unowned(self) -> Int64s:
        """The heaviest partitions that cost no move, which every packing places anew."""
        problem = self._problem
        unowned = np.nonzero((problem.current_owner[:-1] < 0) & (problem.start[:-1] >= 0))[0]
        weight = problem.lag[unowned] + problem.rate[unowned] * self._time_s
        most = _UNOWNED_PER_MEMBER * problem.n_members + _UNOWNED_AT_LEAST
        return unowned[np.argsort(-weight, kind="stable")[:most]]
