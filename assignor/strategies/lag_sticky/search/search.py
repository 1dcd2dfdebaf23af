"""The search for the best plan within a budget of moves."""

from dataclasses import dataclass

import numpy as np

from assignor.evaluation.drain.bound import lower_bound
from assignor.evaluation.drain.work import Work
from assignor.model.arrays import Floats, Int64s
from assignor.strategies.lag_sticky.problem import Plan, Problem
from assignor.strategies.lag_sticky.search.candidates import shelves
from assignor.strategies.lag_sticky.search.local_search import polish
from assignor.strategies.lag_sticky.search.packing import Filler
from assignor.strategies.lag_sticky.search.state import Standing

# Deadlines of a sweep: enough that plans of fewer moves are among them, and then towards the earliest.
_GRID = 9
_BISECTIONS = 6
_LEAST_SHARE = 1e-6
_NEAR = 1 + 1e-3
# Polishing several plans halves the distance to the best one in small groups; in large ones it costs too much.
_MOST_POLISHED = 8
_MEMBERS_POLISHED = 200
# Partitions placed anew by every attempt; all of them would make attempts at a fresh group as long as P.
_LOOSE_PER_MEMBER = 2
_LOOSE_AT_LEAST = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outlook:
    """How much sooner the group could be drained, and by what."""

    low_s: float
    """No assignment meets less."""
    rest_low_s: float
    """No assignment meets less for what is left without the `outstanding` partitions and their members."""
    outstanding: int
    """Partitions that take longer than `rest_low_s` even with a member to themselves."""
    slowest: Int64s
    """The partitions that take longest with the fastest of their readers to themselves, the slowest first."""
    slowest_s: Floats
    """How long."""
    never: Int64s
    """Those of them that not even that member is ever through with."""


class Search:
    """A search prepared for one problem, to be run with one budget or several."""

    def __init__(self, problem: Problem, work: Work, bound_s: float) -> None:
        """Prepare.

        Args:
            problem: The group, its start and the terms.
            work: What there is to read.
            bound_s: No assignment is through sooner; may be `inf`.
        """
        self._problem = problem
        self.start = problem.plan({})
        self._outlook = _outlook(problem, work, bound_s)
        self._floor_s = problem.terms.floor_s
        low_s = max(self._outlook.rest_low_s, self.start.late_s * _LEAST_SHARE)
        self._time_s = min(float(np.sqrt(low_s * self.start.late_s)), problem.price.horizon_s)
        self._loose = self._heaviest_free()
        self._shelf = shelves(problem, self._loose, self._time_s)

    @property
    def is_needed(self) -> bool:
        """Is there anything to be won."""
        outlook, times = self._outlook, self.start.pressures
        if len(times) == 0:
            return False
        slowest_s, next_s = float(times[0]), float(times[min(outlook.outstanding, len(times) - 1)])
        return (
            slowest_s > max(outlook.low_s, self._floor_s) * _NEAR
            or next_s > max(outlook.rest_low_s, self._floor_s) * _NEAR
        )

    def best(self, budget: int) -> Plan:
        """The best plan found with so many moves; the start if none is better."""
        if not self.is_needed:
            return self.start
        best = self.start
        enough_s = max(self._outlook.low_s, self._floor_s) * _NEAR
        found = self._swept(budget) if self._problem.terms.counts == "free" else []
        for plan in [*self._shortlist(found), self.start]:
            best = self._better(plan, best, budget)
            best = self._better(self._polished(plan, budget), best, budget)
            if best is not self.start and best.late_s <= enough_s:
                break
        return best

    def _better(self, new: Plan, old: Plan, budget: int) -> Plan:
        # Within the floor a plan might trade one time for another; it may not make the group later.
        is_allowed = new.moves <= budget and new.late_s <= self.start.late_s
        return new if is_allowed and self._problem.is_better(new, old) else old

    def _shortlist(self, plans: list[Plan]) -> list[Plan]:
        """The best of the plans, each another one; fewer of a large group, for there each takes longer."""
        price_s = self._problem.terms.move_cost_s
        ranked = sorted(plans, key=lambda plan: (plan.late_s + price_s * plan.moves, plan.area, plan.moves))
        few: list[Plan] = []
        for plan in ranked:
            if not few or plan.area != few[-1].area:
                few.append(plan)
        return few[: max(1, min(_MOST_POLISHED, _MEMBERS_POLISHED // self._problem.n_members))]

    def _polished(self, plan: Plan, budget: int) -> Plan:
        standing = Standing(self._problem, self._shelf, self._loose, plan, self._time_s)
        lost = np.zeros(self._problem.n_members, np.bool_)
        places = plan.changes()
        for pid in self._outlook.never.tolist():
            lost[places.get(pid, int(self._problem.start[pid]))] = True
        polish(standing, budget, lost)
        return standing.plan()

    def _swept(self, budget: int) -> list[Plan]:
        """Plans that meet deadlines, first for the slowest member and then for the slowest that can do better.

        A partition that takes very long even with a member to itself sets a deadline that hides what can be
        done for the rest. So the rest is swept once more, with the slowest left as early as they came out.
        """
        outlook, start = self._outlook, self.start
        filler = Filler(self._problem, self._shelf, self._loose, (outlook.slowest, outlook.slowest_s), budget)
        plans = self._sweep(filler, outlook.low_s, float(start.pressures[0]), excused_s=0.0)
        if outlook.outstanding > 0:
            best = start
            for plan in plans:
                best = self._better(plan, best, budget)
            high_s = float(best.pressures[outlook.outstanding])
            plans += self._sweep(filler, outlook.rest_low_s, high_s, excused_s=best.late_s)
        return [plan for plan in plans if plan.moves <= budget and plan.late_s <= start.late_s]

    def _sweep(self, filler: Filler, low_s: float, high_s: float, *, excused_s: float) -> list[Plan]:
        """Deadlines from the latest to the earliest, then closer to the earliest one met."""
        plans: list[Plan] = []

        def is_met(time_s: float) -> bool:
            found = filler.attempts(time_s * _NEAR, max(time_s * _NEAR, excused_s))
            before = len(plans)
            plans.extend(self._problem.plan(places) for places in found)
            return len(plans) > before

        low_s = max(low_s, self._floor_s, high_s * _LEAST_SHARE)
        if high_s <= low_s * _NEAR:
            return plans
        met_s, missed_s = high_s, low_s
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
        return plans

    def _heaviest_free(self) -> Int64s:
        """Partitions that move for free, the heaviest of them: every attempt places them anew."""
        problem = self._problem
        free = np.nonzero((problem.home[:-1] < 0) & (problem.start[:-1] >= 0))[0]
        weight = problem.lag[free] + problem.rate[free] * self._time_s
        most = _LOOSE_PER_MEMBER * problem.n_members + _LOOSE_AT_LEAST
        return free[np.argsort(-weight, kind="stable")[:most]]


def _outlook(problem: Problem, work: Work, bound_s: float) -> Outlook:
    price = problem.price
    if bound_s > price.horizon_s:
        bound_s = lower_bound(work.as_of(price.horizon_s)).time_s
    readers = work.fastest()
    alone_s = price.late_s(work.lag, work.rate, readers)
    fastest = work.taking_part()
    slowest = _largest(alone_s, len(fastest))
    # Without the k slowest partitions and the k fastest members, k = 0, 1, ...; one member has to be left.
    out = slowest[: len(fastest) - 1]
    lag, rate = (_left_without(values, out) for values in (work.lag, work.rate))
    capacity = _left_without(fastest, np.arange(len(out)))
    rest_s = price.late_s(lag, rate, capacity)
    stands_out = np.append(alone_s[out] > rest_s[: len(out)] * _NEAR, False)
    outstanding = int(stands_out.argmin())
    return Outlook(
        low_s=bound_s,
        rest_low_s=float(rest_s[outstanding]) if outstanding > 0 else bound_s,
        outstanding=outstanding,
        slowest=work.pid[slowest],
        slowest_s=alone_s[slowest],
        never=work.pid[slowest][work.rate[slowest] >= readers[slowest]],
    )


def _left_without(values: Floats, out: Int64s) -> Floats:
    """Sums of the values without the first k of `out`, k = 0 .. len(out).

    Added up from the end: of a difference of sums, nothing is left of what is 1e16 times smaller than them.
    """
    others = np.ones(len(values), np.bool_)
    others[out] = False
    left: Floats = np.cumsum(np.append(values[others].sum(), values[out[::-1]]))[::-1]
    return left


def _largest(values: Floats, n: int) -> Int64s:
    """Positions of the n largest, falling."""
    some = np.argpartition(values, len(values) - n)[len(values) - n :] if 0 < n < len(values) else None
    positions: Int64s = np.arange(len(values))[:n] if some is None else np.sort(some)
    return positions[np.argsort(-values[positions], kind="stable")]
