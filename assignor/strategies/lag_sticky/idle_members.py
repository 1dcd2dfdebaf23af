"""Work for members that hold nothing, also while no member is late."""

import numpy as np

from assignor.evaluation.drain.time import summed
from assignor.model.arrays import Floats
from assignor.strategies.lag_sticky.problem import Problem, Solution
from assignor.strategies.lag_sticky.search.candidates import by_member_and_weight

_ROUNDING = 1 + 1e-9
_ENOUGH = 0.9
"""Part of its fair share with which a member is content: the rest would be many small moves."""


def use_idle_members(problem: Problem, solution: Solution, budget: int) -> Solution:
    """The solution with a fair share for members that hold nothing, as far as no other member is worse off.

    Below `floor_s` nobody is late, so the search would never move anything to a member that just joined. Such a
    member takes partitions from the members with the highest utilisation, the heaviest partitions first, up to
    its share of all arrivals by capacity. Without arrivals every partition has the same weight.

    No transfer makes a member later than the one it relieves was, or the lag area larger.
    """
    # Even counts leave no member idle that could hold something.
    if problem.options.counts == "even":
        return solution
    count = problem.counts(solution)
    closed = problem.group.closed
    can_take = problem.group.readers() if closed is None else problem.group.readers() & ~closed
    idle = np.nonzero((count == 0) & can_take)[0]
    if len(idle) == 0 or count.max() <= 1:
        return solution
    sharing = _FairSharing(problem, solution, budget)
    for member in idle.tolist():
        sharing.give_share_to(member)
    return problem.solution_of(sharing.member)


class _FairSharing:
    def __init__(self, problem: Problem, solution: Solution, budget: int) -> None:
        self._problem = problem
        self.member = problem.member(solution)
        self._lag, self._rate = solution.lag.copy(), solution.rate.copy()
        self._moves_left = budget - solution.moves
        self._weight: Floats = problem.rate if problem.rate.any() else np.ones(len(problem.rate))
        held = self.member >= 0
        by = self.member[held]
        self._utilisation = summed(self._weight[:-1][held], by=by, n=problem.n_members) / problem.capacity
        self._fair_share = float(self._weight[:-1][held].sum()) / float(problem.capacity.sum())
        loose = self.member if problem.fixed is None else np.where(problem.fixed, np.int32(-1), self.member)
        ordered = by_member_and_weight(loose, self._weight[:-1], problem.n_members)
        counts = np.bincount(loose[loose >= 0], minlength=problem.n_members)
        self._held = np.split(ordered, np.cumsum(counts)[:-1])
        # A member that has something fixed may give away all the rest.
        self._keeps = np.bincount(by, minlength=problem.n_members) == counts

    def give_share_to(self, idle: int) -> None:
        """Transfer partitions to one idle member until it has its share or nobody can give more."""
        exhausted = np.array(
            [len(p) <= keeps for p, keeps in zip(self._held, self._keeps, strict=True)], np.bool_
        )
        exhausted[idle] = True
        while self._utilisation[idle] < self._fair_share * _ENOUGH and not exhausted.all():
            busiest = int(np.where(exhausted, -np.inf, self._utilisation).argmax())
            # Nobody holds more than its share any more: taking on would only shift the lack.
            if self._utilisation[busiest] <= self._fair_share and len(self._held[idle]) > 0:
                return
            partition = self._pick(busiest, idle)
            if partition < 0:
                exhausted[busiest] = True
            else:
                self._transfer(partition, busiest, idle)
                exhausted[busiest] = len(self._held[busiest]) <= self._keeps[busiest]

    def _pick(self, busiest: int, idle: int) -> int:
        """The heaviest partition within the share; -1 when there is none, or its transfer would do harm."""
        problem = self._problem
        partitions = self._held[busiest]
        if problem.may_read is not None:
            partitions = partitions[problem.may_read[problem.set_of[partitions], idle]]
        capacity, utilisation = problem.capacity[idle], self._utilisation[idle]
        # A heavier one would only make the two members change places.
        limit = (self._utilisation[busiest] - utilisation) * capacity
        partitions = partitions[self._weight[partitions] < limit]
        room = (self._fair_share - utilisation) * capacity * _ROUNDING
        fitting = partitions[self._weight[partitions] <= room]
        if len(fitting) == 0 and len(self._held[idle]) == 0:
            # Even the lightest exceeds the share; an idle member is still worse.
            fitting = partitions[-1:]
        if len(fitting) == 0:
            return -1
        partition = int(fitting[0])
        is_affordable = self._added_moves(partition, busiest, idle) <= self._moves_left
        return partition if is_affordable and self._is_harmless(partition, busiest, idle) else -1

    def _added_moves(self, partition: int, from_member: int, to_member: int) -> int:
        """How many moves the transfer adds to the solution; -1 when it takes one back."""
        owner = int(self._problem.current_owner[partition])
        return int(owner not in {-1, to_member}) - int(owner not in {-1, from_member})

    def _is_harmless(self, partition: int, from_member: int, to_member: int) -> bool:
        problem = self._problem
        both = np.array([from_member, to_member])
        sign = np.array([-1.0, 1.0])
        capacity = problem.capacity[both]
        lag, rate = self._lag[both], self._rate[both]
        lag_after, rate_after = lag + sign * problem.lag[partition], rate + sign * problem.rate[partition]
        before_s = problem.cost_model.finite_drain_s(lag, rate, capacity)
        after_s = problem.cost_model.finite_drain_s(lag_after, rate_after, capacity)
        before, after = (
            float(problem.cost_model.lag_area(*loads, capacity).sum())
            for loads in ((lag, rate), (lag_after, rate_after))
        )
        return bool(after_s[1] <= before_s[0]) and after <= before

    def _transfer(self, partition: int, from_member: int, to_member: int) -> None:
        problem, weight = self._problem, self._weight[partition]
        self.member[partition] = to_member
        self._moves_left -= self._added_moves(partition, from_member, to_member)
        for member, sign in ((from_member, -1.0), (to_member, 1.0)):
            self._lag[member] += sign * problem.lag[partition]
            self._rate[member] += sign * problem.rate[partition]
            self._utilisation[member] += sign * weight / problem.capacity[member]
        self._held[from_member] = self._held[from_member][self._held[from_member] != partition]
        self._held[to_member] = np.append(self._held[to_member], partition)
