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
_NEVER = 50
"""Stands for more moves than that, also when two are added up in eight bits."""
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
        self._slow = slow
        self._loads_s_now = loads_s
        self._limit_s = float(loads_s[slow])
        self._budget = min(budget - state.moves, _MOST_ADDED, _moves_worth(self._limit_s, problem.options))
        self._most_s = most_s
        self._weigh_until_s = min(self._limit_s, problem.cost_model.horizon_s)
        row = state.candidates[slow]
        self._given = row[row >= 0]
        self._near = self._neighbours(loads_s)
        self._more = self._moves_more(self._given[:, None], slow, self._near)
        """Given x near: moves that giving the partition to the member adds; `_NEVER` if it may not."""

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
        some = np.nonzero(reads)[0]
        if len(some) > _NEIGHBOURS:
            # A partial sort: most members never matter.
            some = some[np.argpartition(loads_s[some], _NEIGHBOURS)[:_NEIGHBOURS]]
        return some[np.argsort(loads_s[some], kind="stable")]

    def _moves_more(self, partitions: Int64s, from_member: int | Int64s, to_member: int | Int64s) -> Int8s:
        """Moves that giving the partitions from one member to the other adds; `_NEVER` where it may not be.

        A partition away from its current owner counts as a move. -1 is no partition, which no member may have.
        """
        problem = self._problem
        owner = problem.current_owner[partitions]
        # Booleans are bytes of 0 and 1: taken as numbers, not converted.
        more = (owner != to_member).view(np.int8) - (owner != from_member).view(np.int8)
        impossible = partitions < 0
        if problem.may_read is not None:
            impossible = impossible | ~problem.may_read[problem.set_of[partitions], to_member]
        found: Int8s = np.where(impossible, np.int8(_NEVER), more)
        return found

    def _may_grow(self, members: Int64s) -> Bools:
        """Whether these members may end with one partition more, and the slow one with one less."""
        count = self._state.count
        # Even counts stay even if the two members change places.
        if self._problem.options.counts == "even":
            return np.asarray(count[members] + 1 == count[self._slow], np.bool_)
        return np.asarray(count[members] < self._problem.cap, np.bool_)

    # The budget is nearly always what decides: once it is spent, one improvement in thirty is within it. So what each
    # adds to the moves comes first, as a table of small integers, and loads are worked out for the few that are left,
    # of all members concerned at once: a call of numpy costs as much as a thousand numbers in it.
    # The axes of the tables: given partition, second member, partition passed on, third member.

    def _best_move_or_swap(self) -> Improvement | None:
        state, lag, rate = self._state, self._problem.lag, self._problem.rate
        # A move is a swap for no partition, in the first column.
        partitions = np.full((len(self._near), 1 + state.candidates.shape[1]), -1, np.int64)
        partitions[:, 1:] = state.candidates[self._near]
        in_return = self._moves_more(partitions, self._near[:, None], self._slow)
        in_return[:, 0] = np.where(self._may_grow(self._near), np.int8(0), np.int8(_NEVER))
        table = self._more[:, :, None] + in_return
        given_weight, back_weight = self._weight(self._given), self._weight(partitions)
        gained = given_weight[:, None, None] - back_weight
        room, excess = self._room(self._near), self._excess()
        i, m, j = np.nonzero((table <= self._budget) & (gained < room[:, None]) & (gained > excess))
        if len(i) == 0:
            return None
        given, near, back, slow = self._given[i], self._near[m], partitions[m, j], np.full(len(i), self._slow)
        less_lag, less_rate = lag[given] - lag[back], rate[given] - rate[back]
        slow_s, near_s = self._loads_s(
            (slow, near),
            (state.lag[slow] - less_lag, state.lag[near] + less_lag),
            (state.rate[slow] - less_rate, state.rate[near] + less_rate),
        )
        is_move = j == 0
        after_s = np.where(is_move | (near_s <= self._most_s), np.maximum(slow_s, near_s), np.inf)
        moves = table[i, m, j].astype(np.int64)
        cost_s = self._cost_s(after_s, moves)
        at = int(cost_s.argmin())
        if cost_s[at] == np.inf:
            return None
        # Of equal cost a move comes first.
        at = next(iter(np.nonzero(is_move & (cost_s == cost_s[at]))[0].tolist()), at)
        there = Transfer(int(given[at]), self._slow, int(near[at]))
        in_turn = () if is_move[at] else (Transfer(int(back[at]), int(near[at]), self._slow),)
        return Improvement(transfers=(there, *in_turn), moves=int(moves[at]), cost_s=float(cost_s[at]))

    def _best_ejection_chain(self) -> Improvement | None:
        state, lag, rate = self._state, self._problem.lag, self._problem.rate
        members, idlest = self._near[:_CHAIN_MEMBERS], self._idlest()
        partitions = state.candidates[members, :_CHAIN_PASSED_ON]
        passed_on = self._moves_more(partitions[:, :, None], members[:, None, None], idlest)
        possible = (members[:, None] != idlest) & self._may_grow(idlest)
        given_weight, weight = self._weight(self._given[:_CHAIN_GIVEN]), self._weight(partitions)
        possible = possible[:, None, :] & (weight[:, :, None] < self._room(idlest))
        if not possible.any():
            return None
        passed_on = np.where(possible, passed_on, np.int8(_NEVER))
        gained = given_weight[:, None, None] - weight
        excess = self._excess()
        fits = (gained < self._room(members)[:, None]) & (given_weight > excess)[:, None, None]
        table = self._more[:_CHAIN_GIVEN, :_CHAIN_MEMBERS, None, None] + passed_on
        i, m, j, k = np.nonzero((table <= self._budget) & fits[..., None])
        if len(i) == 0:
            return None
        given, via, ejected, last = self._given[i], members[m], partitions[m, j], idlest[k]
        slow = np.full(len(i), self._slow)
        slow_s, via_s, last_s = self._loads_s(
            (slow, via, last),
            (
                state.lag[slow] - lag[given],
                state.lag[via] + lag[given] - lag[ejected],
                state.lag[last] + lag[ejected],
            ),
            (
                state.rate[slow] - rate[given],
                state.rate[via] + rate[given] - rate[ejected],
                state.rate[last] + rate[ejected],
            ),
        )
        others_s = np.maximum(via_s, last_s)
        after_s = np.where(others_s <= self._most_s, np.maximum(slow_s, others_s), np.inf)
        moves = table[i, m, j, k].astype(np.int64)
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

    def _room(self, members: Int64s) -> Floats:
        """Weight that the members can take and stay below the load of the slow one; a little more for rounding."""
        state, bins = self._state, self._problem.capacity[members] * self._limit_s
        room: Floats = bins - state.lag[members] - state.rate[members] * self._weigh_until_s
        return room + _ROUNDING * bins

    def _excess(self) -> float:
        """Weight that the slow member has to lose to get below the limit; a little less, to allow for rounding."""
        state, slow = self._state, self._slow
        bin_ = float(self._problem.capacity[slow]) * self._limit_s
        room = bin_ - float(state.lag[slow]) - float(state.rate[slow]) * self._weigh_until_s
        return -(room + _ROUNDING * bin_)

    def _loads_s(
        self, members: tuple[Int64s, ...], lag: tuple[Floats, ...], rate: tuple[Floats, ...]
    ) -> Floats:
        """Loads of members with this lag and these arrivals, a row for each of the tuples."""
        capacity = self._problem.capacity[np.concatenate(members)]
        loads_s = self._problem.cost_model.load_s(np.concatenate(lag), np.concatenate(rate), capacity)
        return loads_s.reshape(len(members), -1)

    def _cost_s(self, after_s: Floats, moves: Int64s) -> Floats:
        """Cost of each improvement, infinite where it does not lower the largest load by more than its moves cost."""
        reached = np.maximum(after_s, self._problem.options.floor_s)
        moves_s = self._problem.options.move_cost_s * moves
        good = (after_s < self._limit_s * _CLEARLY_LESS) & (self._limit_s - reached > moves_s)
        # Ties: below the floor the smaller load, and of equal loads the one with fewer moves.
        return np.where(good, reached + moves_s + 1e-6 * after_s + 1e-9 * self._limit_s * moves, np.inf)

    def _idlest(self) -> Int64s:
        """The members of least load that may be given something, but for the slow one."""
        members = np.argsort(self._loads_s_now, kind="stable")
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
