"""Packing to a deadline: evicted partitions are packed into residual capacity, heaviest first.

First fit decreasing in spirit: items by falling weight, bins chosen by best or worst fit. Unlike in bin packing an
item that fits nowhere may evict lighter ones, which are packed after it.
"""

import heapq
import operator
from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from assignor.strategies.lag_sticky.problem import Problem
from assignor.strategies.lag_sticky.search.bounds import SearchBounds
from assignor.strategies.lag_sticky.search.candidates import Candidates
from assignor.strategies.lag_sticky.search.deadline import Deadline, fewest_covering
from assignor.strategies.lag_sticky.search.residual_capacity import ResidualCapacity, residual_capacity
from assignor.strategies.lag_sticky.search.rounds import packed_in_rounds

# The heaviest are packed one by one: this many per member, and at least this many in all.
_SINGLY_PER_MEMBER = 4
_SINGLY_AT_LEAST = 1_000
# Only clearly lighter partitions are evicted for another; two of one weight would evict each other for ever.
_CLEARLY_LESS = 1 - 1e-12
_ROUNDING = 1 + 1e-9


class DeadlinePacker:
    """Packs to one deadline after another; keeps what these have in common."""

    def __init__(
        self,
        problem: Problem,
        candidates: Candidates,
        unowned: Int64s,
        bounds: SearchBounds,
        budget: int,
    ) -> None:
        """Prepare packings within a budget of moves.

        Args:
            problem: The group.
            candidates: What each member holds, without `unowned`.
            unowned: Partitions that every packing places anew, because that costs no move.
            bounds: Says which members cannot meet a deadline.
            budget: Most moves.
        """
        self._problem = problem
        self._candidates = candidates
        self._unowned = unowned
        self._budget = budget
        self._bounds = bounds
        self._singly = _SINGLY_PER_MEMBER * problem.n_members + _SINGLY_AT_LEAST
        self._count = problem.start_count - np.bincount(problem.start[unowned], minlength=problem.n_members)

    def packings(self, time_s: float, exempt_s: float) -> Iterator[dict[int, int]]:
        """Members of the evicted and unowned partitions, for each way to meet the deadline that was found.

        Args:
            time_s: The deadline.
            exempt_s: The deadline of members that hold a partition nobody can drain by `time_s`, or on which more is
                fixed than they can; they take nothing.
        """
        problem = self._problem
        deadline = Deadline(problem, self._candidates, self._unowned, time_s)
        bounds, too_late_s = self._bounds, time_s * (1 + 1e-9)
        hopeless = bounds.slowest[bounds.slowest_s > too_late_s]
        exempt = np.zeros(problem.n_members, np.bool_)
        if bounds.fixed_s is not None:
            exempt |= bounds.fixed_s > too_late_s
        unowned = self._unowned
        if len(hopeless) > 0:
            exempt[problem.start[hopeless]] = True
            unowned = unowned[~np.isin(unowned, hopeless)]
        of_exempt = self._shed(exempt, unowned, exempt_s)
        before: Int64s | None = None
        for keep_heaviest in (False, True):
            evicted = np.concatenate((deadline.evictions(~exempt, keep_heaviest=keep_heaviest), of_exempt))
            # The same partitions would be packed in the same ways.
            if before is not None and np.array_equal(evicted, before):
                return
            before = evicted
            # Partitions without a current owner are evicted for nothing.
            left = self._budget - np.count_nonzero(problem.current_owner[evicted] >= 0)
            if left >= 0:
                # Worst fit spreads the load, best fit saves large gaps for heavy partitions; neither is always better.
                # Among many the rest is light enough to fill every gap, and one way does.
                many = len(evicted) + len(unowned) > self._singly
                bins = residual_capacity(self._problem, *self._without(evicted, deadline), exempt)
                packing = _Packing(problem, deadline, bins, left)
                packing.begin(np.concatenate((evicted, unowned)), evicted, self._singly)
                for best_fit in (False,) if many else (False, True):
                    members = packing.packed(best_fit=best_fit)
                    if members is not None:
                        yield members
                        if many:
                            return

    def _shed(self, exempt: Bools, unowned: Int64s, exempt_s: float) -> Int64s:
        """Partitions that exempt members evict, which would make them later than their own, later deadline."""
        if not exempt.any():
            return np.zeros(0, np.int64)
        later = Deadline(self._problem, self._candidates, unowned, exempt_s)
        return later.evictions(exempt, keep_heaviest=True)

    def _without(self, evicted: Int64s, deadline: Deadline) -> tuple[Floats, Int64s]:
        """Residual capacity and partitions of each member once the evicted have left."""
        origin = self._problem.start[evicted]
        count = self._count - np.bincount(origin, minlength=self._problem.n_members)
        residual = deadline.residual.copy()
        np.add.at(residual, origin, deadline.weight(evicted))
        return residual, count


class _Packing:
    """Packings of the same partitions in one way or another."""

    def __init__(self, problem: Problem, deadline: Deadline, bins: ResidualCapacity, budget: int) -> None:
        self._problem = problem
        self._deadline = deadline
        self._at_first = bins, budget
        self._first_evicted: list[int] = []
        self._first_queue: list[tuple[float, int]] = []
        self._light = np.zeros(0, np.int64)
        # State of the packing in progress.
        self._bins, self._budget = self._at_first
        self._evicted: set[int] = set()
        self._queue: list[tuple[float, int]] = []

    def begin(self, partitions: Int64s, evicted: Int64s, singly: int) -> None:
        """Queue the partitions to pack, the evicted among them; those have left their residual capacities already.

        Only the heaviest `singly` are packed one by one.
        """
        self._first_evicted = evicted.tolist()
        weights = -self._deadline.weight(partitions)
        if len(partitions) > singly:
            order = np.lexsort((partitions, weights))
            self._light = partitions[order[singly:]]
            partitions, weights = partitions[order[:singly]], weights[order[:singly]]
        self._first_queue = list(zip(weights.tolist(), partitions.tolist(), strict=True))
        heapq.heapify(self._first_queue)

    def packed(self, *, best_fit: bool) -> dict[int, int] | None:
        """Member of each partition of the queue; None when one fits nowhere within the budget."""
        bins, self._budget = self._at_first
        self._bins, self._evicted, self._queue = (
            bins.copy(),
            set(self._first_evicted),
            self._first_queue.copy(),
        )
        members: dict[int, int] = {}
        while self._queue:
            minus_weight, partition = heapq.heappop(self._queue)
            member = self._bin_for(partition, -minus_weight, best_fit=best_fit)
            if member < 0:
                return None
            self._bins.change(member, weight=-minus_weight, count=1)
            members[partition] = member
        return members if self._pack_light(members) else None

    def _pack_light(self, members: dict[int, int]) -> bool:
        light = self._light
        if len(light) == 0:
            return True
        residual = self._bins.open_residual() + self._deadline.tolerance
        weights = self._deadline.weight(light)
        member = packed_in_rounds(self._problem, light, weights, residual, self._bins.counts())
        if member is None:
            return False
        members.update(zip(light.tolist(), member.tolist(), strict=True))
        return True

    def _bin_for(self, partition: int, weight: float, *, best_fit: bool) -> int:
        need = weight - self._deadline.tolerance
        find = self._bins.best_fit if best_fit else self._bins.worst_fit
        member = find(partition, need)
        return member if member >= 0 else self._bin_after_evictions(partition, weight)

    def _bin_after_evictions(self, partition: int, weight: float) -> int:
        """The first of a few members with much residual capacity that can evict enough; -1 for none."""
        for member in self._bins.worst_fits(partition):
            evicted = self._lighter_evictions(member, weight)
            # A handful: lists take a fraction of the time of arrays.
            moves = sum(int(self._problem.current_owner[one]) >= 0 for _, one in evicted)
            if evicted and moves <= self._budget:
                self._budget -= moves
                for minus_weight, one in evicted:
                    self._evicted.add(one)
                    self._bins.change(int(self._problem.start[one]), weight=minus_weight, count=-1)
                    heapq.heappush(self._queue, (minus_weight, one))
                return member
        return -1

    def _lighter_evictions(self, member: int, weight: float) -> list[tuple[float, int]]:
        """The fewest partitions, each lighter than `weight`, that the member must evict to take this weight.

        Minus the weight of each, and its number; none where that is not enough.
        """
        excess = weight - self._bins.of(member)
        # The table first: it is short, and nearly always enough.
        for whole in (False,) if self._deadline.is_listed(member) else (False, True):
            partitions, weights, from_here = self._deadline.by_weight(member, whole=whole)
            # The weights fall, so the lighter ones are the last ones.
            first = bisect_right(weights, -weight * _CLEARLY_LESS, key=operator.neg)
            # All of them together, those evicted before included, are no more than this.
            if from_here[first] * _ROUNDING < excess:
                continue
            left = [at for at in range(first, len(weights)) if partitions[at] not in self._evicted]
            picks = fewest_covering([weights[at] for at in left], excess)
            if picks is not None:
                return [(-weights[left[pick]], partitions[left[pick]]) for pick in picks]
        return []
