"""One deadline: how much room every member has until then, and what those that miss it give up."""

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from assignor.strategies.lag_sticky.problem import Problem
from assignor.strategies.lag_sticky.search.candidates import Shelves

_TOLERANCE = 1e-9


class Deadline:
    """A member meets a deadline x if the weight of what it holds is at most x times its capacity.

    The weight of a partition is its lag and what arrives until x, or until the horizon if that is before.
    """

    def __init__(self, problem: Problem, shelf: Shelves, loose: Int64s, time_s: float) -> None:
        self._problem = problem
        self._shelf = shelf
        self._weigh_until_s = min(time_s, problem.price.horizon_s)
        capacity = problem.capacity * time_s
        self.tolerance = _TOLERANCE * max(1.0, float(capacity.max(initial=0.0)))
        """Weights closer than this are equal."""
        load = problem.start_lag + problem.start_rate * self._weigh_until_s
        np.subtract.at(load, problem.start[loose], self.weight(loose))
        self.room: Floats = capacity - load
        """What each member can take besides what is on its shelf; negative when it misses the deadline."""
        self._sorted: dict[tuple[int, bool], tuple[Int64s, Floats]] = {}

    def weight(self, pids: Int64s) -> Floats:
        """Weight of partitions; 0 of -1."""
        problem = self._problem
        weights: Floats = problem.lag[pids] + problem.rate[pids] * self._weigh_until_s
        return weights

    def shelf(self, member: int, *, whole: bool) -> tuple[Int64s, Floats]:
        """What is on the shelf of a member, or in its row of the table, by falling weight, and the weights."""
        key = member, whole
        if key not in self._sorted:
            pids = self._shelf.of(member) if whole else self._shelf.table[member]
            pids = pids[pids >= 0]
            weights = self.weight(pids)
            order = np.argsort(-weights, kind="stable")
            self._sorted[key] = pids[order], weights[order]
        return self._sorted[key]

    def given_up(self, members: Bools, *, keep_heaviest: bool) -> Int64s:
        """The fewest partitions that let these members meet the deadline.

        A member gives up its heaviest partitions, and last the lightest one that is enough; or, if it can
        and is asked to, it keeps the heaviest one and goes on from the second.
        """
        late = np.nonzero((self.room < -self.tolerance) & members)[0]
        if len(late) == 0:
            return np.zeros(0, np.int64)
        table = self._shelf.table[late]
        weights = self.weight(table)
        order = np.argsort(-weights, axis=1, kind="stable")
        table, weights = np.take_along_axis(table, order, 1), np.take_along_axis(weights, order, 1)
        picked, is_enough = _picked(weights, -self.room[late], skip=int(keep_heaviest))
        rest = [self._given_up_by(m, keep_heaviest=keep_heaviest) for m in late[~is_enough].tolist()]
        return np.concatenate([table[is_enough][picked[is_enough]], *rest])

    def _given_up_by(self, member: int, *, keep_heaviest: bool) -> Int64s:
        """The same for a member whose row in the table does not weigh enough."""
        pids, weights = self.shelf(member, whole=True)
        excess = -float(self.room[member])
        picks = fewest(weights, excess, skip=1) if keep_heaviest else None
        picks = fewest(weights, excess) if picks is None else picks
        return pids if picks is None else pids[picks]


def _picked(weights: Floats, excess: Floats, *, skip: int) -> tuple[Bools, Bools]:
    """In each row of falling weights the fewest that sum to the excess, and whether the row has so much."""
    sums = np.cumsum(weights[:, skip:], axis=1)
    if sums.shape[1] == 0:
        return np.zeros(weights.shape, np.bool_), np.zeros(len(weights), np.bool_)
    is_enough: Bools = sums[:, -1] >= excess
    whole = (sums < excess[:, None]).sum(axis=1)
    row = np.arange(len(weights))
    before = np.where(whole > 0, sums[row, np.maximum(whole, 1) - 1], 0.0)
    column = np.arange(weights.shape[1])[None, :]
    picked: Bools = (column >= skip) & (column < skip + whole[:, None])
    last = (weights >= (excess - before)[:, None]).sum(axis=1) - 1
    picked[row, np.clip(last, 0, weights.shape[1] - 1)] = True
    return picked, is_enough


def fewest(weights: Floats, excess: float, *, skip: int = 0) -> list[int] | None:
    """Positions of the fewest of falling weights that sum to the excess; None when all are not enough.

    Args:
        weights: Of one member.
        excess: More than 0.
        skip: So many of the heaviest are not given.
    """
    picked, is_enough = _picked(weights[None, :], np.array([excess]), skip=skip)
    return np.nonzero(picked[0])[0].tolist() if is_enough[0] else None
