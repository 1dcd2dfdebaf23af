"""The neighbourhood of a solution: moves, swaps and ejection chains that relieve one slow member.

A *move* takes one partition off the slow member, a *swap* exchanges two, and an *ejection chain* gives one to a second
member that passes another on to a third. Chains are needed where no reader of the slow member's partitions has
spare capacity itself (Glover 1996).
"""

from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Bools, Floats, Int8s, Int64s
from assignor.strategies.lag_sticky.options import Options
from assignor.strategies.lag_sticky.search.state import SearchState, Transfer

_CLEARLY_LESS = 1 - 1e-6
_ROUNDING = 1e-8
"""Share of what a member drains in the time; more than `CostModel` rounds spare capacity up by."""
_MOST_ADDED = 2
"""Moves that an improvement adds at most: two partitions change their members."""
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
        self._may_read = problem.may_read
        self._slow = slow
        self._loads_s_now = loads_s
        self._limit_s = float(loads_s[slow])
        self._budget = min(budget - state.moves, _MOST_ADDED, _moves_worth(self._limit_s, problem.options))
        self._most_s = most_s
        self._weigh_until_s = min(self._limit_s, problem.cost_model.horizon_s)
        row = state.candidates[slow]
        self._given = row[row >= 0]
        self._near = self._neighbours(loads_s)
        self._room = self._rooms()

    def best(self) -> Improvement | None:
        """The best move or swap; only if there is none, the best ejection chain."""
        if len(self._given) == 0 or len(self._near) == 0:
            return None
        # A chain is the most expensive to evaluate and changes the most members, so it is the last resort.
        return self._best_move_or_swap() or self._best_ejection_chain()

    def _neighbours(self, loads_s: Floats) -> Int64s:
        """The members of least load that may read any of the slow member's candidates."""
        reads = np.ones(len(loads_s), np.bool_)
        if self._problem.may_read is not None:
            reads = self._problem.may_read[self._problem.set_of[self._given]].any(axis=0)
        reads[self._slow] = False
        some = reads.nonzero()[0]
        if len(some) > _NEIGHBOURS:
            # A partial sort: most members never matter.
            some = some[np.argpartition(loads_s[some], _NEIGHBOURS)[:_NEIGHBOURS]]
        return some[loads_s[some].argsort(kind="stable")]

    def _moves_more(self, partitions: Int64s, from_member: int | Int64s, to_member: int | Int64s) -> Int8s:
        """Moves that giving the partitions from one member to the other adds; 0 of -1, which is no partition.

        A partition away from its current owner counts as a move.
        """
        owner = self._problem.current_owner[partitions]
        # Booleans are bytes of 0 and 1: taken as numbers, not converted.
        more: Int8s = (owner != to_member).view(np.int8) - (owner != from_member).view(np.int8)
        return more

    def _may_grow(self, members: Int64s) -> Bools:
        """Whether these members may end with one partition more, and the slow one with one less."""
        count = self._state.count
        # Even counts stay even if the two members change places.
        if self._problem.options.counts == "even":
            even: Bools = count[members] + 1 == count[self._slow]
            return even
        below: Bools = count[members] < self._problem.cap
        return below

    # The budget and the weights decide nearly always: one improvement in thirty is left after them. So loads are worked
    # out for these alone, of all members concerned at once: a call of numpy costs as much as a thousand numbers in it.
    # The axes of the tables: given partition, and what happens in return.

    def _best_move_or_swap(self) -> Improvement | None:
        # A move is a swap for no partition, in the first column.
        partitions = np.full((len(self._near), 1 + self._state.candidates.shape[1]), -1, np.int64)
        partitions[:, 1:] = self._state.candidates[self._near]
        possible = partitions >= 0
        if self._may_read is not None:
            possible &= self._may_read[self._problem.set_of[partitions], self._slow]
        possible[:, 0] = self._may_grow(self._near)
        back, near = partitions[possible], self._near[possible.nonzero()[0]]
        gained = self._weight(self._given)[:, None] - self._weight(back)
        more = self._moves_more(self._given[:, None], self._slow, near)
        more += self._moves_more(back, near, self._slow)
        fits = self._fits(self._given, near, gained, more)
        fits &= gained > self._excess
        i, j = fits.nonzero()
        if len(i) == 0:
            return None
        given, near, back, moves = self._given[i], near[j], back[j], more[i, j].astype(np.int64)
        members = self._with_slow(near)
        lag, rate = self._state.lag[members], self._state.rate[members]
        for load, weight in ((lag, self._problem.lag), (rate, self._problem.rate)):
            less = weight[given] - weight[back]
            load[0] -= less
            load[1] += less
        slow_s, near_s = self._loads_s(members, lag, rate)
        is_move, after_s = back < 0, np.maximum(slow_s, near_s)
        if self._most_s < np.inf:
            after_s[~is_move & (near_s > self._most_s)] = np.inf
        cost_s = self._cost_s(after_s, moves)
        at = int(cost_s.argmin())
        if cost_s[at] == np.inf:
            return None
        if not is_move[at]:
            # A move comes before a swap of the same cost.
            at = next(iter(np.nonzero(is_move & (cost_s == cost_s[at]))[0].tolist()), at)
        there = Transfer(int(given[at]), self._slow, int(near[at]))
        in_turn = () if is_move[at] else (Transfer(int(back[at]), int(near[at]), self._slow),)
        return Improvement(transfers=(there, *in_turn), moves=int(moves[at]), cost_s=float(cost_s[at]))

    def _best_ejection_chain(self) -> Improvement | None:
        given = self._given[:_CHAIN_GIVEN]
        given = given[self._weight(given) > self._excess]
        members, idlest = self._near[:_CHAIN_MEMBERS], self._idlest()
        partitions = self._state.candidates[members, :_CHAIN_PASSED_ON]
        possible = (members[:, None] != idlest) & self._may_grow(idlest)
        possible = possible[:, None, :] & (self._weight(partitions)[:, :, None] < self._room[idlest])
        possible &= (partitions >= 0)[:, :, None]
        if self._may_read is not None:
            possible &= self._may_read[self._problem.set_of[partitions][:, :, None], idlest]
        m, j, k = possible.nonzero()
        if len(given) == 0 or len(m) == 0:
            return None
        via, ejected, last = members[m], partitions[m, j], idlest[k]
        gained = self._weight(given)[:, None] - self._weight(ejected)
        more = self._moves_more(given[:, None], self._slow, via)
        more += self._moves_more(ejected, via, last)
        i, j = self._fits(given, via, gained, more).nonzero()
        if len(i) == 0:
            return None
        given, via, ejected, last = given[i], via[j], ejected[j], last[j]
        moves = more[i, j].astype(np.int64)
        members = self._with_slow(via, last)
        lag, rate = self._state.lag[members], self._state.rate[members]
        for load, weight in ((lag, self._problem.lag), (rate, self._problem.rate)):
            load[0] -= weight[given]
            load[1] += weight[given]
            load[1] -= weight[ejected]
            load[2] += weight[ejected]
        slow_s, via_s, last_s = self._loads_s(members, lag, rate)
        others_s = np.maximum(via_s, last_s)
        after_s = np.maximum(slow_s, others_s)
        after_s[others_s > self._most_s] = np.inf
        cost_s = self._cost_s(after_s, moves)
        at = int(cost_s.argmin())
        if cost_s[at] == np.inf:
            return None
        first = Transfer(int(given[at]), self._slow, int(via[at]))
        second = Transfer(int(ejected[at]), int(via[at]), int(last[at]))
        return Improvement(transfers=(first, second), moves=int(moves[at]), cost_s=float(cost_s[at]))

    # What cannot be below the limit is left out before loads are worked out. At most T seconds of load are at most T
    # seconds of drain time, and a member has drained by T only if lag + rate * min(T, horizon) <= capacity * T. That
    # is linear, so a difference of two weights tells, and as a rule most improvements drop out.

    def _weight(self, partitions: Int64s) -> Floats:
        """Weight of partitions at the load of the slow member; 0 of -1."""
        problem = self._problem
        weights: Floats = problem.lag[partitions] + problem.rate[partitions] * self._weigh_until_s
        return weights

    def _rooms(self) -> Floats:
        """Weight that each member can take and stay below the load of the slow one; a little more for rounding."""
        state, bins = self._state, self._problem.capacity * self._limit_s
        room: Floats = bins - state.lag - state.rate * self._weigh_until_s
        return room + _ROUNDING * bins

    @property
    def _excess(self) -> float:
        """Weight that the slow member has to lose to get below the limit; a little less, to allow for rounding."""
        return -float(self._room[self._slow])

    def _fits(self, given: Int64s, members: Int64s, gained: Floats, more: Int8s) -> Bools:
        """True for each member that may read its partition and has room for the weight, within the budget of moves."""
        fits: Bools = (gained < self._room[members]) & (more <= self._budget)
        if self._may_read is not None:
            fits &= self._may_read[self._problem.set_of[given][:, None], members]
        return fits

    def _with_slow(self, *others: Int64s) -> Int64s:
        """The slow member, and others beside it, a row for each."""
        members = np.full((1 + len(others), len(others[0])), self._slow, np.int64)
        for row, other in enumerate(others, 1):
            members[row] = other
        return members

    def _loads_s(self, members: Int64s, lag: Floats, rate: Floats) -> Floats:
        """Loads of members with this lag and these arrivals."""
        return self._problem.cost_model.load_s(lag, rate, self._problem.capacity[members])

    def _cost_s(self, after_s: Floats, moves: Int64s) -> Floats:
        """Cost of each improvement, infinite where it does not lower the largest load by more than its moves cost."""
        reached = np.maximum(after_s, self._problem.options.floor_s)
        moves_s = self._problem.options.move_cost_s * moves
        good = (after_s < self._limit_s * _CLEARLY_LESS) & (self._limit_s - reached > moves_s)
        # Ties: below the floor the smaller load, and of equal loads the one with fewer moves.
        return np.where(good, reached + moves_s + 1e-6 * after_s + 1e-9 * self._limit_s * moves, np.inf)

    def _idlest(self) -> Int64s:
        """The members of least load that may be given something, but for the slow one."""
        members = self._loads_s_now.argsort(kind="stable")
        closed = self._problem.group.closed
        if closed is not None:
            members = members[~closed[members]]
        few: Int64s = members[:_CHAIN_MEMBERS]
        others: Int64s = few[few != self._slow]
        return others


def _moves_worth(load_s: float, options: Options) -> int:
    """Most moves that a step may add and still gain more than they cost: no load counts as less than the floor."""
    if options.move_cost_s == 0:
        return _MOST_ADDED
    return int(max(load_s - options.floor_s, 0.0) / options.move_cost_s * (1 + _ROUNDING))
