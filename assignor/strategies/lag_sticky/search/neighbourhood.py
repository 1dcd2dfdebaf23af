"""The neighbourhood of a solution: moves, swaps and ejection chains that relieve one slow member.

A *move* takes one partition off the slow member, a *swap* exchanges two, and an *ejection chain* gives one to a second
member that passes another on to a third. Chains are needed where no reader of the slow member's partitions has
spare capacity itself (Glover 1996).
"""

from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from assignor.strategies.lag_sticky.search.state import SearchState, Transfer

_CLEARLY_LESS = 1 - 1e-6
# Members and partitions that are considered: the work of a step is their product.
_NEIGHBOURS = 16
_CHAIN_GIVEN = 8
_CHAIN_PASSED_ON = 12
_CHAIN_MEMBERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """Transfers that are carried out together."""

    transfers: tuple[Transfer, ...]
    moves: int
    """What they add to the moves of the solution."""
    cost_s: float
    """Load of the slowest member concerned afterwards, plus the cost of the moves; less is better."""


class Neighbourhood:
    """The improvements that relieve one member; all of one kind are evaluated in one array expression.

    An improvement is admitted if it lowers the largest load of the members concerned by more than its moves cost,
    stays within the budget, and keeps to the rule on counts.
    """

    def __init__(
        self, state: SearchState, slow: int, loads_s: Floats, budget: int, *, most_s: float = np.inf
    ) -> None:
        """The neighbourhood of one member.

        Args:
            state: The solution as it stands.
            slow: The member to relieve.
            loads_s: Load of every member.
            budget: Most moves of the solution.
            most_s: No other member may come above this load by a swap or an ejection chain.
        """
        problem = state.problem
        self._state = state
        self._problem = problem
        self._cost_model = problem.cost_model
        self._slow = slow
        self._limit_s = float(loads_s[slow])
        self._budget = budget - state.moves
        self._most_s = most_s
        row = state.candidates[slow]
        self._given = row[row >= 0]
        self._near = self._neighbours(loads_s)
        self._idlest = self._open(np.argsort(loads_s, kind="stable"))[:_CHAIN_MEMBERS]
        self._left = self._without(slow, self._given)

    def best(self) -> Improvement | None:
        """The best move or swap; only if there is none, the best ejection chain."""
        if len(self._given) == 0 or len(self._near) == 0:
            return None
        found = [step for step in (self._best_move(), self._best_swap()) if step is not None]
        # A chain is the dearest to evaluate and changes most members, so it is the last resort.
        if found:
            return min(found, key=lambda step: step.cost_s)
        return self._best_ejection_chain()

    def _neighbours(self, loads_s: Floats) -> Int64s:
        """The members of least load that may read any of the slow member's candidates."""
        reads = np.ones(len(loads_s), np.bool_)
        if self._problem.may_read is not None:
            reads = self._problem.may_read[self._problem.set_of[self._given]].any(axis=0)
        reads[self._slow] = False
        some = np.nonzero(reads)[0]
        if len(some) > _NEIGHBOURS:
            # A partial sort: most members never matter.
            some = some[np.argpartition(loads_s[some], _NEIGHBOURS)[:_NEIGHBOURS]]
        return some[np.argsort(loads_s[some], kind="stable")]

    def _open(self, members: Int64s) -> Int64s:
        closed = self._problem.group.closed
        return members if closed is None else members[~closed[members]]

    def _without(self, member: int, partitions: Int64s) -> tuple[Floats, Floats]:
        problem, state = self._problem, self._state
        return state.lag[member] - problem.lag[partitions], state.rate[member] - problem.rate[partitions]

    def _away(self, partitions: Int64s, member: int | Int64s) -> Int64s:
        """1 where the partition would be away from its current owner, and so count as a move, at the member."""
        owner = self._problem.current_owner[partitions]
        away: Int64s = ((owner >= 0) & (owner != member)).astype(np.int64)
        return away

    def _may_read(self, partitions: Int64s, member: int | Int64s) -> Bools:
        may_read = self._problem.may_read
        if may_read is None:
            return np.ones(np.broadcast(partitions, member).shape, np.bool_)
        allowed: Bools = may_read[self._problem.set_of[partitions], member]
        return allowed

    def _may_grow(self, members: Int64s) -> Bools:
        """May these members end with one partition more, and the slow one with one less."""
        count = self._state.count
        # Even counts stay even if the two members change places.
        if self._problem.options.counts == "even":
            return np.asarray(count[members] + 1 == count[self._slow], np.bool_)
        return np.asarray(count[members] < self._problem.cap, np.bool_)

    def _load_s(self, lag: Floats, rate: Floats, members: int | Int64s) -> Floats:
        return self._cost_model.load_s(lag, rate, self._problem.capacity[members])

    def _cheapest(self, after_s: Floats, moves: Int64s, admitted: Bools) -> tuple[float, int]:
        """Cost and flat position of the best improvement; infinite when none is admitted."""
        reached = np.maximum(after_s, self._problem.options.floor_s)
        moves_s = self._problem.options.move_cost_s * moves
        good = (
            admitted
            & (moves <= self._budget)
            & (after_s < self._limit_s * _CLEARLY_LESS)
            & (self._limit_s - reached > moves_s)
        )
        # Ties: below the floor the smaller load, and of equal loads the one with fewer moves.
        cost_s = np.where(good, reached + moves_s + 1e-6 * after_s + 1e-9 * self._limit_s * moves, np.inf)
        position = int(cost_s.argmin())
        return float(cost_s.flat[position]), position

    # The axes of the arrays below: given partition, second member, partition passed on, third member.

    def _best_move(self) -> Improvement | None:
        problem, state = self._problem, self._state
        given, near = self._given[:, None], self._near[None, :]
        slow_s = self._load_s(*self._left, self._slow)[:, None]
        near_s = self._load_s(
            state.lag[near] + problem.lag[given], state.rate[near] + problem.rate[given], near
        )
        moves = self._away(given, near) - self._away(given, self._slow)
        admitted = self._may_read(given, near) & self._may_grow(near)
        cost_s, position = self._cheapest(np.maximum(slow_s, near_s), moves, admitted)
        if not np.isfinite(cost_s):
            return None
        i, m = np.unravel_index(position, moves.shape)
        transfer = Transfer(int(self._given[i]), self._slow, int(self._near[m]))
        return Improvement(transfers=(transfer,), moves=int(moves[i, m]), cost_s=cost_s)

    def _best_swap(self) -> Improvement | None:
        problem, state = self._problem, self._state
        given, near = self._given[:, None, None], self._near[None, :, None]
        back = state.candidates[self._near][None, :, :]
        lag, rate = problem.lag[given] - problem.lag[back], problem.rate[given] - problem.rate[back]
        slow_s = self._load_s(state.lag[self._slow] - lag, state.rate[self._slow] - rate, self._slow)
        near_s = self._load_s(state.lag[near] + lag, state.rate[near] + rate, near)
        moves = (
            self._away(given, near)
            - self._away(given, self._slow)
            + self._away(back, self._slow)
            - self._away(back, near)
        )
        admitted = (
            (back >= 0)
            & self._may_read(given, near)
            & self._may_read(back, self._slow)
            & (near_s <= self._most_s)
        )
        cost_s, position = self._cheapest(np.maximum(slow_s, near_s), moves, admitted)
        if not np.isfinite(cost_s):
            return None
        i, m, j = np.unravel_index(position, moves.shape)
        member = int(self._near[m])
        there = Transfer(int(self._given[i]), self._slow, member)
        in_return = Transfer(int(back[0, m, j]), member, self._slow)
        return Improvement(transfers=(there, in_return), moves=int(moves[i, m, j]), cost_s=cost_s)

    def _best_ejection_chain(self) -> Improvement | None:
        problem, state = self._problem, self._state
        given = self._given[:_CHAIN_GIVEN, None, None, None]
        via = self._near[:_CHAIN_MEMBERS][None, :, None, None]
        ejected = state.candidates[via[0, :, 0, 0], :_CHAIN_PASSED_ON][None, :, :, None]
        last = self._idlest[self._idlest != self._slow][None, None, None, :]
        via_s = self._load_s(
            state.lag[via] + problem.lag[given] - problem.lag[ejected],
            state.rate[via] + problem.rate[given] - problem.rate[ejected],
            via,
        )
        last_s = self._load_s(
            state.lag[last] + problem.lag[ejected], state.rate[last] + problem.rate[ejected], last
        )
        slow_s = self._load_s(*self._left, self._slow)[:_CHAIN_GIVEN, None, None, None]
        moves = (
            self._away(given, via)
            - self._away(given, self._slow)
            + self._away(ejected, last)
            - self._away(ejected, via)
        )
        admitted = (ejected >= 0) & (via != last) & self._may_read(given, via) & self._may_read(ejected, last)
        others_s = np.maximum(via_s, last_s)
        admitted = admitted & self._may_grow(last) & (others_s <= self._most_s)
        cost_s, position = self._cheapest(np.maximum(slow_s, others_s), moves, admitted)
        if not np.isfinite(cost_s):
            return None
        i, m, j, k = np.unravel_index(position, moves.shape)
        middle, end = int(via[0, m, 0, 0]), int(last[0, 0, 0, k])
        first = Transfer(int(self._given[i]), self._slow, middle)
        second = Transfer(int(ejected[0, m, j, 0]), middle, end)
        return Improvement(transfers=(first, second), moves=int(moves[i, m, j, k]), cost_s=cost_s)
