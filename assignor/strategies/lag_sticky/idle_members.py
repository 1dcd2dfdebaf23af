"""Members that hold nothing are given work, also while nobody is late."""

import numpy as np

from assignor.evaluation.drain.time import summed
from assignor.model.arrays import Floats
from assignor.strategies.lag_sticky.problem import Plan, Problem
from assignor.strategies.lag_sticky.search.candidates import by_member_and_weight

_ROUNDING = 1 + 1e-9
_ENOUGH = 0.9
"""Part of its share with which a member is content: the rest would be many small moves."""


def employed(problem: Problem, plan: Plan, budget: int) -> Plan:
    """The plan with a fair share for members that hold nothing, as far as nobody else is worse off.

    Below `floor_s` nobody is late, so nothing would ever move to a member that joined; but it is there to be
    used. It takes partitions from the members that arrivals fill most, the largest first, up to its share of all
    arrivals by capacity. Without arrivals every partition counts the same.

    No step makes a member later than the one it relieves was, or the lag area larger.
    """
    if problem.terms.counts == "even":
        return plan
    count = problem.counts(plan)
    idle = np.nonzero((count == 0) & problem.group.readers())[0]
    if len(idle) == 0 or count.max() <= 1:
        return plan
    employer = _Employer(problem, plan, budget)
    for taker in idle.tolist():
        employer.employ(taker)
    return problem.plan_of(employer.member)


class _Employer:
    def __init__(self, problem: Problem, plan: Plan, budget: int) -> None:
        self._problem = problem
        self.member = problem.member(plan)
        self._lag, self._rate = plan.lag.copy(), plan.rate.copy()
        self._moves_left = budget - plan.moves
        self._weight: Floats = problem.rate if problem.rate.any() else np.ones(len(problem.rate))
        held = self.member >= 0
        by = self.member[held]
        self._filled = summed(self._weight[:-1][held], by=by, n=problem.n_members) / problem.capacity
        self._fair = float(self._weight[:-1][held].sum()) / float(problem.capacity.sum())
        ordered = by_member_and_weight(self.member, self._weight[:-1], problem.n_members)
        self._holds = np.split(ordered, np.cumsum(np.bincount(by, minlength=problem.n_members))[:-1])

    def employ(self, taker: int) -> None:
        """Give one member its share, or what of it is to be had."""
        tried = np.array([len(pids) <= 1 for pids in self._holds], np.bool_)
        tried[taker] = True
        while self._filled[taker] < self._fair * _ENOUGH and not tried.all():
            giver = int(np.where(tried, -np.inf, self._filled).argmax())
            if self._filled[giver] <= self._fair and len(self._holds[taker]) > 0:
                return
            pid = self._gift(giver, taker)
            if pid < 0:
                tried[giver] = True
            else:
                self._hand_over(pid, giver, taker)
                tried[giver] = len(self._holds[giver]) <= 1

    def _gift(self, giver: int, taker: int) -> int:
        """The heaviest partition within the share; -1 when there is none, or it would do harm."""
        problem = self._problem
        pids = self._holds[giver]
        if problem.may_read is not None:
            pids = pids[problem.may_read[problem.set_of[pids], taker]]
        capacity, filled = problem.capacity[taker], self._filled[taker]
        # The two must not merely change places.
        pids = pids[self._weight[pids] < (self._filled[giver] - filled) * capacity]
        fitting = pids[self._weight[pids] <= (self._fair - filled) * capacity * _ROUNDING]
        if len(fitting) == 0 and len(self._holds[taker]) == 0:
            # Even the lightest is more than the share; it is still better than nothing.
            fitting = pids[-1:]
        if len(fitting) == 0:
            return -1
        pid = int(fitting[0])
        is_affordable = self._moves(pid, giver, taker) <= self._moves_left
        return pid if is_affordable and self._harms_nobody(pid, giver, taker) else -1

    def _moves(self, pid: int, giver: int, taker: int) -> int:
        """What the hand-over adds to the moves of the plan."""
        home = int(self._problem.home[pid])
        return int(home not in {-1, taker}) - int(home not in {-1, giver})

    def _harms_nobody(self, pid: int, giver: int, taker: int) -> bool:
        problem = self._problem
        both = np.array([giver, taker])
        sign = np.array([-1.0, 1.0])
        capacity = problem.capacity[both]
        lag, rate = self._lag[both], self._rate[both]
        lag_after, rate_after = lag + sign * problem.lag[pid], rate + sign * problem.rate[pid]
        before_s = problem.price.late_s(lag, rate, capacity)
        after_s = problem.price.late_s(lag_after, rate_after, capacity)
        before, after = (
            float(problem.price.record_s(*loads, capacity).sum())
            for loads in ((lag, rate), (lag_after, rate_after))
        )
        return bool(after_s[1] <= before_s[0]) and after <= before

    def _hand_over(self, pid: int, giver: int, taker: int) -> None:
        problem, weight = self._problem, self._weight[pid]
        self.member[pid] = taker
        self._moves_left -= self._moves(pid, giver, taker)
        for member, sign in ((giver, -1.0), (taker, 1.0)):
            self._lag[member] += sign * problem.lag[pid]
            self._rate[member] += sign * problem.rate[pid]
            self._filled[member] += sign * weight / problem.capacity[member]
        self._holds[giver] = self._holds[giver][self._holds[giver] != pid]
        self._holds[taker] = np.append(self._holds[taker], pid)
