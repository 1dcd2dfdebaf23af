"""One deadline: the residual capacity of every member until then, and what members that miss it evict."""

import operator
from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from assignor.strategies.lag_sticky.problem import Problem
from assignor.strategies.lag_sticky.search.candidates import Candidates

_TOLERANCE = 1e-9
_FEW_LATE = 8
"""Members, up to which lists take less time than calls of numpy."""


class ByWeight(NamedTuple):
    """Candidates of one member by falling weight; lists, since single elements of arrays are slow to read."""

    partitions: list[int]
    weights: list[float]
    from_here: list[float]
    """The sum of the weights from each on; 0 after the last."""


class Deadline:
    """A member meets a deadline of x seconds if the weight of what it holds is at most x times its capacity.

    The weight of a partition is its lag and what arrives until x, or until the horizon if that is before. This
    turns drain times into a packing: members are bins of size x * capacity, partitions are items of that weight.
    """

    def __init__(self, problem: Problem, candidates: Candidates, unowned: Int64s, time_s: float) -> None:
        self._problem = problem
        self._candidates = candidates
        self._weigh_until_s = min(time_s, problem.cost_model.horizon_s)
        capacity = problem.capacity * time_s
        # Bins may hold 1e16 records: an absolute tolerance would vanish in the rounding of their sums.
        self.tolerance = _TOLERANCE * max(1.0, float(capacity.max(initial=0.0)))
        """Weights closer than this are equal."""
        load = problem.start_lag + problem.start_rate * self._weigh_until_s
        if len(unowned) > 0:
            # `subtract.at`, because several unowned partitions may start on one member.
            np.subtract.at(load, problem.start[unowned], self.weight(unowned))
        self.residual: Floats = capacity - load
        """Weight each member can take besides its candidates; negative when it misses the deadline."""
        # Evictions ask for the same members again and again, one packing after another.
        self._sorted: dict[tuple[int, bool], ByWeight] = {}
        self._rows: dict[bytes, tuple[Int64s, Floats]] = {}

    def weight(self, partitions: Int64s) -> Floats:
        """Weight of partitions; 0 of -1."""
        problem = self._problem
        weights: Floats = problem.lag[partitions] + problem.rate[partitions] * self._weigh_until_s
        return weights

    def is_listed(self, member: int) -> bool:
        """Whether the candidate table lists everything that the member holds."""
        first = self._candidates.first
        return bool(first[member + 1] - first[member] <= self._candidates.table.shape[1])

    def by_weight(self, member: int, *, whole: bool) -> ByWeight:
        """Candidates of a member by falling weight.

        Args:
            member: The member.
            whole: All that it holds; otherwise its row of the candidate table.
        """
        key = member, whole
        if key not in self._sorted:
            partitions = self._candidates.of(member) if whole else self._candidates.table[member]
            partitions = partitions[partitions >= 0]
            weights = self.weight(partitions)
            order = (-weights).argsort(kind="stable")
            weights = weights[order]
            to_end = np.zeros(len(weights) + 1)
            weights[::-1].cumsum(out=to_end[1:])
            self._sorted[key] = ByWeight(partitions[order].tolist(), weights.tolist(), to_end[::-1].tolist())
        return self._sorted[key]

    def evictions(self, members: Bools, *, keep_heaviest: bool) -> Int64s:
        """The fewest partitions that have to leave for these members to meet the deadline.

        A member evicts its heaviest partitions, and last the lightest one that is enough. With `keep_heaviest` it
        keeps the heaviest one, if it can, and evicts from the second on: the heaviest is the hardest to place.

        Source: Aggarwal, Motwani, Zhu, The load rebalancing problem (2006).
        """
        late = np.nonzero((self.residual < -self.tolerance) & members)[0]
        if len(late) == 0:
            return np.zeros(0, np.int64)
        if len(late) <= _FEW_LATE:
            return self._evictions_one_by_one(late.tolist(), keep_heaviest=keep_heaviest)
        table, weights = self._rows_by_weight(late)
        picked, is_enough = _fewest_in_rows(weights, -self.residual[late], skip=int(keep_heaviest))
        rest = [self._evictions_of(m, keep_heaviest=keep_heaviest) for m in late[~is_enough].tolist()]
        return np.concatenate([table[is_enough][picked[is_enough]], *rest])

    def _evictions_one_by_one(self, late: list[int], *, keep_heaviest: bool) -> Int64s:
        evicted: list[int] = []
        rest: list[Int64s] = []
        for member in late:
            partitions, weights, _ = self.by_weight(member, whole=False)
            picks = fewest_covering(weights, -float(self.residual[member]), skip=int(keep_heaviest))
            if picks is None:
                rest.append(self._evictions_of(member, keep_heaviest=keep_heaviest))
            else:
                evicted += [partitions[at] for at in picks]
        return np.concatenate([np.array(evicted, np.int64), *rest])

    def _rows_by_weight(self, members: Int64s) -> tuple[Int64s, Floats]:
        """The members' rows of the table of candidates by falling weight, and the weights."""
        key = members.tobytes()
        if key not in self._rows:
            table = self._candidates.table[members]
            weights = self.weight(table)
            order = np.argsort(-weights, axis=1, kind="stable")
            row = np.arange(len(members))[:, None]
            self._rows[key] = table[row, order], weights[row, order]
        return self._rows[key]

    def _evictions_of(self, member: int, *, keep_heaviest: bool) -> Int64s:
        """Evictions of a member whose row of the table does not weigh enough."""
        partitions, weights, _ = self.by_weight(member, whole=True)
        excess = -float(self.residual[member])
        picks = fewest_covering(weights, excess, skip=1) if keep_heaviest else None
        picks = fewest_covering(weights, excess) if picks is None else picks
        chosen = partitions if picks is None else [partitions[at] for at in picks]
        return np.array(chosen, np.int64)


def _fewest_in_rows(weights: Floats, excess: Floats, *, skip: int) -> tuple[Bools, Bools]:
    """In each row of falling weights the fewest that sum to the excess, and whether the row has that much.

    The first k of falling weights are the heaviest k, so the least k whose sum reaches the excess is the fewest
    there can be; replacing the last by the lightest that is still enough moves the least weight for that k.
    """
    sums = np.cumsum(weights[:, skip:], axis=1)
    if sums.shape[1] == 0:
        return np.zeros(weights.shape, np.bool_), np.zeros(len(weights), np.bool_)
    is_enough: Bools = sums[:, -1] >= excess
    whole = (sums < excess[:, None]).sum(axis=1)
    row = np.arange(len(weights))
    before = np.where(whole > 0, sums[row, np.maximum(whole, 1) - 1], 0.0)
    column = np.arange(weights.shape[1])[None, :]
    picked: Bools = (column >= skip) & (column < skip + whole[:, None])
    # The weights fall, so the lightest that covers the rest is the last that is at least as heavy.
    last = (weights >= (excess - before)[:, None]).sum(axis=1) - 1
    picked[row, np.clip(last, 0, weights.shape[1] - 1)] = True
    return picked, is_enough


def fewest_covering(weights: list[float], excess: float, *, skip: int = 0) -> list[int] | None:
    """Positions of the fewest of falling weights that sum to the excess; None when all are not enough.

    As `_fewest_in_rows` of one row, without arrays: a packing asks for a few partitions of one member after another.

    Args:
        weights: Weights of the candidates of one member.
        excess: Weight that has to leave.
        skip: Number of the heaviest candidates that stay.
    """
    before, whole = 0.0, skip
    for whole in range(skip, len(weights)):
        if before + weights[whole] >= excess:
            break
        before += weights[whole]
    else:
        return None
    # The weights fall, so the lightest that covers the rest is the last that is at least as heavy.
    last = bisect_right(weights, before - excess, key=operator.neg) - 1
    return sorted({*range(skip, whole), max(last, 0)})
