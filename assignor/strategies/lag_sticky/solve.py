"""One round of `lag-sticky`: the best plan that pays, from the present owners."""

from dataclasses import dataclass

from assignor.evaluation.drain.bound import LowerBound
from assignor.evaluation.drain.work import Work
from assignor.model.arrays import Int32s
from assignor.model.group import Group
from assignor.strategies import lag_aware
from assignor.strategies.lag_sticky.idle_members import employed
from assignor.strategies.lag_sticky.options import Terms
from assignor.strategies.lag_sticky.problem import Plan, Problem
from assignor.strategies.lag_sticky.pruning import trimmed
from assignor.strategies.lag_sticky.search.search import Search
from assignor.strategies.lag_sticky.start import problem_of
from assignor.strategies.sticky import strategy as sticky


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Round:
    """What was found and what was taken."""

    problem: Problem
    budget: int
    """Most moves."""
    start: Plan
    found: Plan
    """The best plan of all, also if it does not pay; the start if there is no better one."""
    taken: Plan
    """The best plan that pays, with work for idle members."""

    @property
    def member(self) -> Int32s:
        """Member of each partition under the plan that was taken."""
        return self.problem.member(self.taken)


def play(group: Group, terms: Terms, work: Work, bound: LowerBound) -> Round:
    """One round: search, drop moves that buy too little, and take what pays."""
    problem = problem_of(group, terms, work.capacity, bound.time_s)
    search = Search(problem, work, bound.time_s)
    start = found = taken = search.start
    budget = terms.budget(len(work.pid))
    for allowed in _budgets(budget) if terms.monotone == "yes" else [budget]:
        plan = trimmed(problem, search.best(allowed), start)
        plan = _no_worse_than_others(problem, plan, allowed)
        if found is start or problem.is_better(plan, found):
            found = plan
        is_next = taken is start or (problem.is_better(plan, taken) and plan.late_s <= taken.late_s)
        if is_next and pays(problem, start, plan):
            taken = plan
    return Round(
        problem=problem, budget=budget, start=start, found=found, taken=employed(problem, taken, budget)
    )


def pays(problem: Problem, start: Plan, plan: Plan) -> bool:
    """Does the plan save more lag area than its moves cost, and `min_gain` of what there was.

    Where nobody is late yet and arrivals fill a member, the area is that of catching up after a standstill of
    `floor_s`. With free moves and a `min_gain` of 0 there is nothing to weigh: what drains sooner pays.
    """
    before, after = areas(problem, start, plan)
    must_save = problem.terms.min_gain * before + cost(problem, plan)
    return plan.moves == 0 or must_save == 0 or before - after > must_save


def areas(problem: Problem, start: Plan, plan: Plan) -> tuple[float, float]:
    """Record-seconds of lag at the start and under the plan, as `pays` compares them."""
    if start.late_s > problem.terms.floor_s:
        return start.area, plan.area
    return problem.standstill_area(start), problem.standstill_area(plan)


def cost(problem: Problem, plan: Plan) -> float:
    """Record-seconds of lag that the moves of a plan make."""
    if plan.moves == 0:
        return 0.0
    home = problem.home[plan.pid]
    moved = plan.pid[(home >= 0) & (home != plan.to)]
    paused = problem.terms.group_pause_s * float(problem.lag.sum())
    return paused + float(problem.pause_cost(moved).sum())


def _budgets(most: int) -> list[int]:
    """Powers of two up to `most`: those of a smaller budget are among those of a larger one."""
    return [2**k for k in range(most.bit_length())]


def _no_worse_than_others(problem: Problem, plan: Plan, budget: int) -> Plan:
    """The plan, or what `lag-aware` or the sticky strategies answer if that is better still.

    Only with a budget for every partition, for they move as many as they like.
    """
    movable = int((problem.home >= 0).sum())
    if budget < movable or problem.terms.counts == "even":
        return plan
    group, price_s = problem.group, problem.terms.move_cost_s
    others = (lag_aware.assign(group), lag_aware.assign(group, scope="group"), sticky.assign(group))
    for assignment in others:
        other = problem.plan_of(assignment.member)
        sooner = other.late_s + price_s * other.moves < plan.late_s + price_s * plan.moves
        if sooner and int(problem.counts(other).max(initial=0)) <= problem.cap:
            plan = other
    return plan
