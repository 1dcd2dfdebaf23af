"""Work for members that hold nothing, also while no member is late."""

import heapq

import numpy as np

from assignor.evaluation.drain.time import summed
from assignor.model.arrays import Bools, Floats, Int32s, Int64s
from assignor.model.group import Group
from assignor.strategies.lag_sticky.givers import Giver
from assignor.strategies.lag_sticky.problem import Problem, Solution
from assignor.strategies.lag_sticky.search.candidates import by_member_and_weight

_ROUNDING = 1 + 1e-9
_ENOUGH = 0.9
"""Part of its fair share that is enough for a member: the rest would be many small moves."""
_MOST_REFUSALS = 1 << 16
_REFUSALS_EACH = 16
"""Limit of failed queries, in all and at least for one idle member: N times N would take minutes."""


def use_idle_members(problem: Problem, solution: Solution, budget: int) -> Solution:
    """The solution with a fair share for members that hold nothing, as far as no other member is worse off.

    Below `floor_s` no member is late, so the search would never move anything to a member that just joined. Such a
    member takes partitions from the members with the highest utilisation, the heaviest partitions first, up to
    its share of all arrivals by capacity. Without arrivals every partition has the same weight.

    No transfer makes a member later than the one it relieves was, or the lag area larger.
    """
    # Even counts leave no member idle that could hold something.
    if problem.options.counts == "even":
        return solution
    idle = np.nonzero(idle_members(problem.group, problem.counts(solution)))[0]
    if len(idle) == 0:
        return solution
    sharing = _FairSharing(problem, solution, budget)
    most = max(_REFUSALS_EACH, _MOST_REFUSALS // len(idle))
    for member in idle.tolist():
        # Without this, every idle member would query in vain.
        if not sharing.can_go_on():
            break
        sharing.give_share_to(member, most)
    return problem.solution_of(sharing.member())


def idle_members(group: Group, count: Int64s) -> Bools:
    """N entries: whether the member holds nothing but could have something, while some member has several partitions.

    Args:
        group: The group.
        count: Number of partitions of each member.
    """
    idle: Bools = count == 0
    if idle.any():
        idle &= group.readers() & (count.max() > 1)
        if group.closed is not None:
            idle &= ~group.closed
    return idle


class _FairSharing:
    def __init__(self, problem: Problem, solution: Solution, budget: int) -> None:
        self._problem = problem
        self._member = problem.member(solution)
        self._given: dict[int, int] = {}
        self._has_free = bool((problem.current_owner[:-1] != self._member)[self._member >= 0].any())
        # Python's floats: single elements of numpy arrays cost several times as much to read and write.
        self._lag, self._rate = solution.lag.tolist(), solution.rate.tolist()
        self._capacity = problem.capacity.tolist()
        self._moves_left = budget - solution.moves
        self._weight: Floats = problem.rate if problem.rate.any() else np.ones(len(problem.rate))
        held = self._member >= 0
        by, n = self._member[held], problem.n_members
        weights = self._weight[:-1][held]
        self._utilisation = (summed(weights, by=by, n=n) / problem.capacity).tolist()
        self._fair_share = float(weights.sum()) / float(problem.capacity.sum())
        loose = problem.without_fixed(self._member)
        ordered = by_member_and_weight(loose, self._weight[:-1], n)
        count = np.bincount(loose[loose >= 0], minlength=n)
        self._held: list[Int64s] = np.split(ordered, np.cumsum(count)[:-1])
        # The last partition stays, but a member that has something fixed may give away all the rest.
        self._keeps = (np.bincount(by, minlength=n) == count).astype(np.int64).tolist()
        self._givers: dict[int, Giver] = {}
        # A heap: the busiest of thousands is asked for once for each partition that is given.
        self._busiest = [(-self._utilisation[m], m) for m in np.nonzero(count > self._keeps)[0].tolist()]
        heapq.heapify(self._busiest)

    def member(self) -> Int32s:
        """Member of each partition."""
        member: Int32s = self._member.copy()
        member[list(self._given)] = list(self._given.values())
        return member

    def can_go_on(self) -> bool:
        """Whether a move is left, or there was a partition whose transfer adds none."""
        return self._moves_left > 0 or self._has_free

    def give_share_to(self, idle: int, most_refusals: int) -> None:
        """Transfer partitions to one idle member until it has its share or `count_cap`, or no member can give more."""
        taken: list[int] = []
        refused: list[tuple[float, int]] = []
        while len(taken) < self._problem.cap and self._lacks(idle) and self.can_go_on():
            busiest = self._busiest[0][1]
            # No member holds more than its share any more: further transfers would only shift the lack.
            if (self._utilisation[busiest] <= self._fair_share and taken) or len(refused) >= most_refusals:
                break
            heapq.heappop(self._busiest)
            partition = self._pick(busiest, idle, is_first=not taken)
            if partition < 0:
                refused.append((-self._utilisation[busiest], busiest))
                continue
            self._transfer(partition, busiest, idle)
            taken.append(partition)
            self._queue(busiest, can_give=self._giver(busiest).n_left > self._keeps[busiest])
        for entry in refused:
            heapq.heappush(self._busiest, entry)
        if taken:
            self._held[idle] = np.array(taken)
        self._queue(idle, can_give=len(taken) > 1)

    def _lacks(self, idle: int) -> bool:
        """Whether the member lacks some of its share, and another member may give it."""
        return bool(self._busiest) and self._utilisation[idle] < self._fair_share * _ENOUGH

    def _queue(self, member: int, *, can_give: bool) -> None:
        if can_give:
            heapq.heappush(self._busiest, (-self._utilisation[member], member))

    def _giver(self, member: int) -> Giver:
        if member not in self._givers:
            self._givers[member] = Giver.of(self._problem, self._held[member], self._weight)
        return self._givers[member]

    def _pick(self, busiest: int, idle: int, *, is_first: bool) -> int:
        """The heaviest partition within the share; -1 when there is none, or its transfer would do harm."""
        capacity, utilisation = self._capacity[idle], self._utilisation[idle]
        # A heavier one would only swap the two members.
        below = (self._utilisation[busiest] - utilisation) * capacity
        room = (self._fair_share - utilisation) * capacity * _ROUNDING
        giver = self._giver(busiest)
        partition = giver.heaviest(idle, below, room)
        if partition < 0 and is_first:
            # Even the lightest exceeds the share; an idle member is still worse.
            partition = giver.lightest(idle, below)
        if partition < 0 or self._added_moves(partition, busiest, idle) > self._moves_left:
            return -1
        return partition if self._is_harmless(partition, busiest, idle) else -1

    def _added_moves(self, partition: int, from_member: int, to_member: int) -> int:
        """Number of moves that the transfer adds to the solution; -1 if it takes one back."""
        owner = int(self._problem.current_owner[partition])
        return int(owner not in {-1, to_member}) - int(owner not in {-1, from_member})

    def _is_harmless(self, partition: int, from_member: int, to_member: int) -> bool:
        lag, rate = float(self._problem.lag[partition]), float(self._problem.rate[partition])
        if self._rate[to_member] + rate >= self._capacity[to_member]:
            return False
        before = [self._figures(member, 0.0, 0.0) for member in (from_member, to_member)]
        (_, left), (taker_s, taken) = (
            self._figures(from_member, -lag, -rate),
            self._figures(to_member, lag, rate),
        )
        return taker_s <= before[0][0] and left + taken <= before[0][1] + before[1][1]

    def _figures(self, member: int, lag: float, rate: float) -> tuple[float, float]:
        """Drain time and lag area of the member with this additional load."""
        model = self._problem.cost_model
        held = self._lag[member] + lag, self._rate[member] + rate, self._capacity[member]
        return model.drain_of_one_s(*held), model.lag_area_of_one(*held)

    def _transfer(self, partition: int, from_member: int, to_member: int) -> None:
        weight = float(self._weight[partition])
        self._given[partition] = to_member
        self._moves_left -= self._added_moves(partition, from_member, to_member)
        self._giver(from_member).give(partition)
        for member, sign in ((from_member, -1.0), (to_member, 1.0)):
            self._lag[member] += sign * float(self._problem.lag[partition])
            self._rate[member] += sign * float(self._problem.rate[partition])
            self._utilisation[member] += sign * weight / self._capacity[member]
