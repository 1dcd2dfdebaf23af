"""Members that hold nothing are given work, also while nobody is late."""

import numpy as np

from assignor.arrays import Bools, Floats, Int32s
from assignor.drain import summed
from assignor.lag_sticky_problem import Plan, Problem

_ROUNDING = 1 + 1e-9


def employed(problem: Problem, plan: Plan, budget: int) -> Plan:
    """The plan with a fair share for members that hold nothing, as far as nobody else is worse off.

    Below `floor_s` nobody is late, so nothing would ever move to a member that joined; but it is there to be
    used. It takes partitions from the members that arrivals fill most, the largest first, up to its share of all
    arrivals by capacity. Without arrivals every partition counts the same.

    No step makes a member later than the one it relieves was, or the lag area larger.
    """
    if problem.terms.counts == "even":
        return plan
    member = problem.member(plan)
    idle = np.nonzero(problem.counts(plan) == 0)[0]
    if len(idle) == 0 or len(idle) == problem.n_members:
        return plan
    employer = _Employer(problem, plan, member)
    for taker in idle.tolist():
        employer.employ(taker, budget)
    return employer.plan


class _Employer:
    def __init__(self, problem: Problem, plan: Plan, member: Int32s) -> None:
        self._problem = problem
        self._member = member
        rate = problem.rate[:-1]
        self._weight: Floats = rate if rate.any() else np.ones(len(rate))
        held = member >= 0
        self._filled = summed(self._weight[held], by=member[held], n=problem.n_members) / problem.capacity
        self._fair = float(self._weight[held].sum()) / float(problem.capacity.sum())
        self.plan = plan

    def employ(self, taker: int, budget: int) -> None:
        """Give one member its share, or what of it is to be had."""
        problem = self._problem
        tried = problem.counts(self.plan) <= 1
        tried[taker] = True
        while self._filled[taker] < self._fair and not tried.all():
            giver = int(np.where(tried, -np.inf, self._filled).argmax())
            if self._filled[giver] <= self._fair:
                return
            better = self._with_gift(giver, taker, budget)
            if better is None:
                tried[giver] = True
            else:
                self.plan = better
                tried |= problem.counts(better) <= 1

    def _with_gift(self, giver: int, taker: int, budget: int) -> Plan | None:
        """The plan after the best gift of one member to the other; None when there is none."""
        problem = self._problem
        pids = np.nonzero(self._member == giver)[0]
        if problem.may_read is not None:
            pids = pids[problem.may_read[problem.set_of[pids], taker]]
        room = (self._fair - self._filled[taker]) * problem.capacity[taker]
        fitting: Bools = self._weight[pids] <= room * _ROUNDING
        is_idle = not (self._member == taker).any()
        # If even the smallest is more than the share, it is still better than nothing.
        smallest = self._weight[pids].argsort(kind="stable")[: int(is_idle)]
        pids = pids[fitting] if fitting.any() else pids[smallest]
        if len(pids) == 0:
            return None
        pid = int(pids[self._weight[pids].argmax()])
        plan = problem.plan(self.plan.changes() | {pid: taker})
        if plan.moves > budget or not self._harms_nobody(plan, giver, taker):
            return None
        self._member[pid] = taker
        self._filled[giver] -= self._weight[pid] / problem.capacity[giver]
        self._filled[taker] += self._weight[pid] / problem.capacity[taker]
        return plan

    def _harms_nobody(self, plan: Plan, giver: int, taker: int) -> bool:
        price, capacity, before = self._problem.price, self._problem.capacity, self.plan
        relieved_s = price.late_s(before.lag[giver], before.rate[giver], capacity[giver])
        taker_s = price.late_s(plan.lag[taker], plan.rate[taker], capacity[taker])
        return bool(taker_s <= relieved_s) and plan.area <= before.area
