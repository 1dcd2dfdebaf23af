"""The best step for one slow member: give a partition away, exchange two, or pass one on through a third member."""

from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from assignor.strategies.lag_sticky.search.state import Standing, Transfer

_CLEARLY_LESS = 1 - 1e-6
# Members and partitions that are looked at: the work of a step is their product.
_NEIGHBOURS = 16
_CHAIN_GIVEN = 8
_CHAIN_PASSED_ON = 12
_CHAIN_MEMBERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Transfers that are carried out together."""

    transfers: tuple[Transfer, ...]
    moves: int
    """What they add to the moves of the plan."""
    worth_s: float
    """Pressure afterwards of the worst member concerned and the price of the moves; less is better."""


class Options:
    """The steps that relieve one member, `slow`: every option of one kind is evaluated in one expression.

    A step is admitted if it lowers the largest pressure of the members concerned by more than its moves cost,
    stays within the budget, and keeps to the rule on counts.
    """

    def __init__(
        self, standing: Standing, slow: int, pressures: Floats, budget: int, *, most_s: float = np.inf
    ) -> None:
        """The steps for one member.

        Args:
            standing: The plan as it stands.
            slow: The member.
            pressures: Of every member.
            budget: Most moves of the plan.
            most_s: No other member may come above this by an exchange or a chain.
        """
        problem = standing.problem
        self._standing = standing
        self._problem = problem
        self._price = problem.price
        self._slow = slow
        self._limit_s = float(pressures[slow])
        self._budget = budget - standing.moves
        self._most_s = most_s
        row = standing.rows[slow]
        self._given = row[row >= 0]
        self._near = self._neighbours(pressures)
        self._idlest = np.argsort(pressures, kind="stable")[:_CHAIN_MEMBERS]
        self._left = self._without(slow, self._given)

    def best(self) -> Step | None:
        """The best gift or exchange; only if there is none, the best chain."""
        if len(self._given) == 0 or len(self._near) == 0:
            return None
        found = [step for step in (self._gift(), self._exchange()) if step is not None]
        if found:
            return min(found, key=lambda step: step.worth_s)
        return self._chain()

    def _neighbours(self, pressures: Floats) -> Int64s:
        """The members of least pressure that may read something of the slow one's."""
        reads = np.ones(len(pressures), np.bool_)
        if self._problem.may_read is not None:
            reads = self._problem.may_read[self._problem.set_of[self._given]].any(axis=0)
        reads[self._slow] = False
        some = np.nonzero(reads)[0]
        if len(some) > _NEIGHBOURS:
            some = some[np.argpartition(pressures[some], _NEIGHBOURS)[:_NEIGHBOURS]]
        return some[np.argsort(pressures[some], kind="stable")]

    def _without(self, member: int, pids: Int64s) -> tuple[Floats, Floats]:
        problem, standing = self._problem, self._standing
        return standing.lag[member] - problem.lag[pids], standing.rate[member] - problem.rate[pids]

    def _away(self, pids: Int64s, member: int | Int64s) -> Int64s:
        """1 where the partition would be a move at the member."""
        home = self._problem.home[pids]
        away: Int64s = ((home >= 0) & (home != member)).astype(np.int64)
        return away

    def _may(self, pids: Int64s, member: int | Int64s) -> Bools:
        may_read = self._problem.may_read
        if may_read is None:
            return np.ones(np.broadcast(pids, member).shape, np.bool_)
        allowed: Bools = may_read[self._problem.set_of[pids], member]
        return allowed

    def _may_grow(self, members: Int64s) -> Bools:
        """May the slow member give one more than it gets, and these members get one more than they give."""
        count = self._standing.count
        if self._problem.terms.counts == "even":
            return np.asarray(count[members] + 1 == count[self._slow], np.bool_)
        return np.asarray(count[members] < self._problem.cap, np.bool_)

    def _pressure(self, lag: Floats, rate: Floats, members: int | Int64s) -> Floats:
        return self._price.pressure_s(lag, rate, self._problem.capacity[members])

    def _choose(self, after_s: Floats, moves: Int64s, admitted: Bools) -> tuple[float, int]:
        """Worth and flat position of the best option; infinite when none is admitted."""
        reached = np.maximum(after_s, self._problem.terms.floor_s)
        price = self._problem.terms.move_cost_s * moves
        good = (
            admitted
            & (moves <= self._budget)
            & (after_s < self._limit_s * _CLEARLY_LESS)
            & (self._limit_s - reached > price)
        )
        # Of equal pressures the one below the floor, of those the one with fewer moves.
        worth = np.where(good, reached + price + 1e-6 * after_s + 1e-9 * self._limit_s * moves, np.inf)
        position = int(worth.argmin())
        return float(worth.flat[position]), position

    def _gift(self) -> Step | None:
        problem, standing = self._problem, self._standing
        given, near = self._given[:, None], self._near[None, :]
        slow_s = self._pressure(*self._left, self._slow)[:, None]
        near_s = self._pressure(
            standing.lag[near] + problem.lag[given], standing.rate[near] + problem.rate[given], near
        )
        moves = self._away(given, near) - self._away(given, self._slow)
        admitted = self._may(given, near) & self._may_grow(near)
        worth, position = self._choose(np.maximum(slow_s, near_s), moves, admitted)
        if not np.isfinite(worth):
            return None
        i, m = np.unravel_index(position, moves.shape)
        gift = Transfer(int(self._given[i]), self._slow, int(self._near[m]))
        return Step(transfers=(gift,), moves=int(moves[i, m]), worth_s=worth)

    def _exchange(self) -> Step | None:
        problem, standing = self._problem, self._standing
        given, near = self._given[:, None, None], self._near[None, :, None]
        back = standing.rows[self._near][None, :, :]
        lag, rate = problem.lag[given] - problem.lag[back], problem.rate[given] - problem.rate[back]
        slow_s = self._pressure(standing.lag[self._slow] - lag, standing.rate[self._slow] - rate, self._slow)
        near_s = self._pressure(standing.lag[near] + lag, standing.rate[near] + rate, near)
        moves = (
            self._away(given, near)
            - self._away(given, self._slow)
            + self._away(back, self._slow)
            - self._away(back, near)
        )
        admitted = (
            (back >= 0) & self._may(given, near) & self._may(back, self._slow) & (near_s <= self._most_s)
        )
        worth, position = self._choose(np.maximum(slow_s, near_s), moves, admitted)
        if not np.isfinite(worth):
            return None
        i, m, j = np.unravel_index(position, moves.shape)
        member = int(self._near[m])
        gift = Transfer(int(self._given[i]), self._slow, member)
        other = Transfer(int(back[0, m, j]), member, self._slow)
        return Step(transfers=(gift, other), moves=int(moves[i, m, j]), worth_s=worth)

    def _chain(self) -> Step | None:
        problem, standing = self._problem, self._standing
        given = self._given[:_CHAIN_GIVEN, None, None, None]
        via = self._near[:_CHAIN_MEMBERS][None, :, None, None]
        passed = standing.rows[via[0, :, 0, 0], :_CHAIN_PASSED_ON][None, :, :, None]
        last = self._idlest[self._idlest != self._slow][None, None, None, :]
        via_s = self._pressure(
            standing.lag[via] + problem.lag[given] - problem.lag[passed],
            standing.rate[via] + problem.rate[given] - problem.rate[passed],
            via,
        )
        last_s = self._pressure(
            standing.lag[last] + problem.lag[passed], standing.rate[last] + problem.rate[passed], last
        )
        slow_s = self._pressure(*self._left, self._slow)[:_CHAIN_GIVEN, None, None, None]
        moves = (
            self._away(given, via)
            - self._away(given, self._slow)
            + self._away(passed, last)
            - self._away(passed, via)
        )
        admitted = (passed >= 0) & (via != last) & self._may(given, via) & self._may(passed, last)
        others_s = np.maximum(via_s, last_s)
        admitted = admitted & self._may_grow(last) & (others_s <= self._most_s)
        worth, position = self._choose(np.maximum(slow_s, others_s), moves, admitted)
        if not np.isfinite(worth):
            return None
        i, m, j, k = np.unravel_index(position, moves.shape)
        middle, end = int(via[0, m, 0, 0]), int(last[0, 0, 0, k])
        gift = Transfer(int(self._given[i]), self._slow, middle)
        on = Transfer(int(passed[0, m, j, 0]), middle, end)
        return Step(transfers=(gift, on), moves=int(moves[i, m, j, k]), worth_s=worth)
