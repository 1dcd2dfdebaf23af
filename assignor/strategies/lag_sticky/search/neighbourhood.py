"""The neighbourhoods of solutions: moves, swaps and ejection chains that relieve one slow member of each.

A *move* takes one partition off the slow member, a *swap* exchanges two, and an *ejection chain* gives one to a second
member that passes another on to a third. Chains are needed where no reader of the slow member's partitions has
spare capacity itself (Glover 1996).
"""

from collections.abc import Sequence
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
_MEMBERS_AT_ONCE = 32
"""Members, of all solutions, whose improvements are evaluated in one array expression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """Transfers that are carried out together."""

    transfers: tuple[Transfer, ...]
    moves: int
    """What they add to the moves of the solution."""
    cost_s: float
    """Load of the slowest member concerned afterwards, plus the cost of the moves; less is better."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turn:
    """A solution, and the member of it that is to be relieved."""

    state: SearchState
    slow: int
    budget: int
    """Most moves of the solution."""
    most_s: float = np.inf
    """No other member may come above this load by a swap or an ejection chain."""


def best_improvements(turns: Sequence[Turn]) -> list[Improvement | None]:
    """The best move or swap of each solution, all of one problem; only if it has none, its best ejection chain."""
    if not turns:
        return []
    # Tables of a large group are slower together than one after the other: they leave the processor's caches.
    at_once = max(_MEMBERS_AT_ONCE // turns[0].state.problem.n_members, 1)
    parts = (turns[begin : begin + at_once] for begin in range(0, len(turns), at_once))
    return [improvement for part in parts for improvement in _Neighbourhoods(part).best()]


class _Neighbourhoods:
    """The improvements that relieve one member of each of K solutions of one problem.

    All of one kind are evaluated in one array expression: a call of numpy costs as much as a thousand numbers in it,
    and a group of four members has as many. An improvement is admitted if it lowers the largest load of the members
    concerned by more than its moves cost, stays within the budget, and keeps to the rule on counts.
    """

    def __init__(self, turns: Sequence[Turn]) -> None:
        states = [turn.state for turn in turns]
        self._states = states
        self._problem = problem = states[0].problem
        self._each = np.arange(len(turns))
        self._slow = np.array([turn.slow for turn in turns], np.int64)
        # K x N each.
        self._loads_s = np.array([state.loads_s() for state in states])
        self._lag = np.array([state.lag for state in states])
        self._rate = np.array([state.rate for state in states])
        self._count = np.array([state.count for state in states])
        self._limit_s = self._loads_s[self._each, self._slow]
        worth = [_moves_worth(limit_s, problem.options) for limit_s in self._limit_s.tolist()]
        self._budget = np.array(
            [
                # No improvement takes more moves back than it can add.
                max(min(turn.budget - turn.state.moves, _MOST_ADDED, most), -_MOST_ADDED - 1)
                for turn, most in zip(turns, worth, strict=True)
            ],
            np.int8,
        )
        self._most_s = np.array([turn.most_s for turn in turns])
        self._weigh_until_s = np.minimum(self._limit_s, problem.cost_model.horizon_s)
        self._given = _trimmed(np.array([turn.state.candidates[turn.slow] for turn in turns]))
        self._near, self._is_near = self._neighbours()
        more = self._moves_more(self._given[:, :, None], self._slow[:, None, None], self._near[:, None, :])
        self._more = np.where(self._is_near[:, None, :], more, np.int8(_NEVER))
        """K x given x near: moves that giving the partition to the member adds; `_NEVER` if it may not."""

    def best(self) -> list[Improvement | None]:
        """See `best_improvements`."""
        found: list[Improvement | None] = [None] * len(self._each)
        if self._given.shape[1] == 0 or self._near.shape[1] == 0:
            return found
        for k, improvement in self._best_moves_or_swaps().items():
            found[k] = improvement
        # A chain is the most expensive to evaluate and changes the most members, so it is the last resort.
        rest = np.array([k for k, improvement in enumerate(found) if improvement is None], np.int64)
        if len(rest) > 0:
            for k, improvement in self._best_ejection_chains(rest).items():
                found[k] = improvement
        return found

    def _neighbours(self) -> tuple[Int64s, Bools]:
        """K x M: the members of least load that may read a candidate of the slow one, and which entries are one."""
        problem, loads_s = self._problem, self._loads_s
        n = loads_s.shape[1]
        reads: Bools = np.ones(loads_s.shape, np.bool_)
        if problem.may_read is not None:
            may_read = problem.may_read[problem.set_of[self._given]]
            reads = np.logical_or.reduce(may_read & (self._given >= 0)[:, :, None], axis=1)
        reads[self._each, self._slow] = False
        if n <= _NEIGHBOURS:
            near = np.argsort(np.where(reads, loads_s, np.inf), axis=1, kind="stable")[:, : n - 1]
            return near, reads[self._each[:, None], near]
        near, is_near = (
            np.zeros((len(reads), _NEIGHBOURS), np.int64),
            np.zeros((len(reads), _NEIGHBOURS), np.bool_),
        )
        for k, (of_all_s, may) in enumerate(zip(loads_s, reads, strict=True)):
            some = np.nonzero(may)[0]
            if len(some) > _NEIGHBOURS:
                # A partial sort: most members never matter.
                some = some[np.argpartition(of_all_s[some], _NEIGHBOURS)[:_NEIGHBOURS]]
            near[k, : len(some)] = some[np.argsort(of_all_s[some], kind="stable")]
            is_near[k, : len(some)] = True
        return near, is_near

    def _moves_more(self, partitions: Int64s, from_member: Int64s, to_member: Int64s) -> Int8s:
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

    def _may_grow(self, solutions: Int64s, members: Int64s) -> Bools:
        """Whether these members, a row for each solution, may have one partition more, and the slow one one less."""
        count = self._count[solutions[:, None], members]
        # Even counts stay even if the two members change places.
        if self._problem.options.counts == "even":
            return np.asarray(count + 1 == self._count[solutions, self._slow[solutions]][:, None], np.bool_)
        return np.asarray(count < self._problem.cap, np.bool_)

    # The budget is nearly always what decides: once it is spent, one improvement in thirty is within it. So what each
    # adds to the moves comes first, as a table of small integers, and loads are worked out for the few that are left,
    # of all members concerned at once.
    # The axes of the tables: solution, given partition, second member, partition passed on, third member.

    def _best_moves_or_swaps(self) -> dict[int, Improvement]:
        lag, rate, each = self._problem.lag, self._problem.rate, self._each
        held = _trimmed(self._candidates_of(each, self._near))
        # A move is a swap for no partition, in the first column.
        partitions = np.full((*held.shape[:2], 1 + held.shape[2]), -1, np.int64)
        partitions[:, :, 1:] = held
        in_return = self._moves_more(partitions, self._near[:, :, None], self._slow[:, None, None])
        in_return[:, :, 0] = np.where(self._may_grow(each, self._near), np.int8(0), np.int8(_NEVER))
        table = self._more[:, :, :, None] + in_return[:, None]
        given_weight, back_weight = self._weight(each, self._given), self._weight(each, partitions)
        gained = given_weight[:, :, None, None] - back_weight[:, None]
        room, excess = self._room(each, self._near), self._excess()
        is_possible = table <= self._budget[:, None, None, None]
        is_possible &= gained < room[:, None, :, None]
        is_possible &= gained > excess[:, None, None, None]
        k, i, m, j = np.nonzero(is_possible)
        if len(k) == 0:
            return {}
        given, near, back, slow = self._given[k, i], self._near[k, m], partitions[k, m, j], self._slow[k]
        less_lag, less_rate = lag[given] - lag[back], rate[given] - rate[back]
        slow_s, near_s = self._loads_after_s(
            (slow, near),
            (self._lag[k, slow] - less_lag, self._lag[k, near] + less_lag),
            (self._rate[k, slow] - less_rate, self._rate[k, near] + less_rate),
        )
        is_move = j == 0
        after_s = np.where(is_move | (near_s <= self._most_s[k]), np.maximum(slow_s, near_s), np.inf)
        moves = table[k, i, m, j].astype(np.int64)
        cost_s = self._cost_s(k, after_s, moves)
        found = {}
        # Of equal cost a move comes first.
        for of_k, at in _least_of_each(k, cost_s, first=is_move).items():
            from_member, to_member = int(slow[at]), int(near[at])
            there = Transfer(int(given[at]), from_member, to_member)
            in_turn = () if is_move[at] else (Transfer(int(back[at]), to_member, from_member),)
            found[of_k] = Improvement(
                transfers=(there, *in_turn), moves=int(moves[at]), cost_s=float(cost_s[at])
            )
        return found

    def _best_ejection_chains(self, of: Int64s) -> dict[int, Improvement]:
        """The best chain of each of these solutions that has one."""
        lag, rate = self._problem.lag, self._problem.rate
        members, (idlest, is_idlest) = self._near[of, :_CHAIN_MEMBERS], self._idlest(of)
        partitions = _trimmed(self._candidates_of(of, members)[:, :, :_CHAIN_PASSED_ON])
        passed_on = self._moves_more(partitions[..., None], members[:, :, None, None], idlest[:, None, None])
        possible = (members[:, :, None] != idlest[:, None]) & (self._may_grow(of, idlest) & is_idlest)[
            :, None
        ]
        weight = self._weight(of, partitions)
        is_possible = possible[:, :, None] & (weight[..., None] < self._room(of, idlest)[:, None, None])
        if not is_possible.any():
            return {}
        passed_on = np.where(is_possible, passed_on, np.int8(_NEVER))
        given_weight = self._weight(of, self._given[of, :_CHAIN_GIVEN])
        gained = given_weight[:, :, None, None] - weight[:, None]
        fits = gained < self._room(of, members)[:, None, :, None]
        fits &= (given_weight > self._excess()[of][:, None])[:, :, None, None]
        table = self._more[of, :_CHAIN_GIVEN, :_CHAIN_MEMBERS][..., None, None] + passed_on[:, None]
        o, i, m, j, last = np.nonzero(
            (table <= self._budget[of][:, None, None, None, None]) & fits[..., None]
        )
        if len(o) == 0:
            return {}
        k, moves = of[o], table[o, i, m, j, last].astype(np.int64)
        given, via, ejected, last = self._given[k, i], members[o, m], partitions[o, m, j], idlest[o, last]
        slow = self._slow[k]
        slow_s, via_s, last_s = self._loads_after_s(
            (slow, via, last),
            (
                self._lag[k, slow] - lag[given],
                self._lag[k, via] + lag[given] - lag[ejected],
                self._lag[k, last] + lag[ejected],
            ),
            (
                self._rate[k, slow] - rate[given],
                self._rate[k, via] + rate[given] - rate[ejected],
                self._rate[k, last] + rate[ejected],
            ),
        )
        others_s = np.maximum(via_s, last_s)
        after_s = np.where(others_s <= self._most_s[k], np.maximum(slow_s, others_s), np.inf)
        cost_s = self._cost_s(k, after_s, moves)
        return {
            of_k: Improvement(
                transfers=(
                    Transfer(int(given[at]), int(slow[at]), int(via[at])),
                    Transfer(int(ejected[at]), int(via[at]), int(last[at])),
                ),
                moves=int(moves[at]),
                cost_s=float(cost_s[at]),
            )
            for of_k, at in _least_of_each(k, cost_s).items()
        }

    def _candidates_of(self, solutions: Int64s, members: Int64s) -> Int64s:
        """The candidates of these members, a row of members for each solution."""
        rows = zip(solutions.tolist(), members, strict=True)
        return np.array([self._states[k].candidates[of_row] for k, of_row in rows])

    # What cannot be below the limit is left out before loads are worked out. At most T seconds of load are at most T
    # seconds of drain time, and a member has drained by T only if lag + rate * min(T, horizon) <= capacity * T. That
    # is linear, so a difference of two weights tells, and as a rule most improvements drop out.

    def _weight(self, solutions: Int64s, partitions: Int64s) -> Floats:
        """Weight of partitions, a row for each solution, at the load of its slow member; 0 of -1."""
        problem = self._problem
        until_s = self._weigh_until_s[solutions].reshape(-1, *[1] * (partitions.ndim - 1))
        weights: Floats = problem.lag[partitions] + problem.rate[partitions] * until_s
        return weights

    def _room(self, solutions: Int64s, members: Int64s) -> Floats:
        """Weight that the members can take and stay below the load of the slow one; a little more for rounding."""
        k, until_s = solutions[:, None], self._weigh_until_s[solutions][:, None]
        bins = self._problem.capacity[members] * self._limit_s[solutions][:, None]
        room: Floats = bins - self._lag[k, members] - self._rate[k, members] * until_s + _ROUNDING * bins
        return room

    def _excess(self) -> Floats:
        """Weight that the slow member has to lose to get below the limit; a little less, to allow for rounding."""
        k, slow = self._each, self._slow
        bins = self._problem.capacity[slow] * self._limit_s
        room = bins - self._lag[k, slow] - self._rate[k, slow] * self._weigh_until_s
        excess: Floats = -(room + _ROUNDING * bins)
        return excess

    def _loads_after_s(
        self, members: tuple[Int64s, ...], lag: tuple[Floats, ...], rate: tuple[Floats, ...]
    ) -> Floats:
        """Loads of members with this lag and these arrivals, a row for each of the tuples."""
        capacity = self._problem.capacity[np.concatenate(members)]
        loads_s = self._problem.cost_model.load_s(np.concatenate(lag), np.concatenate(rate), capacity)
        return loads_s.reshape(len(members), -1)

    def _cost_s(self, k: Int64s, after_s: Floats, moves: Int64s) -> Floats:
        """Cost of each improvement, infinite where it does not lower the largest load by more than its moves cost."""
        limit_s = self._limit_s[k]
        reached = np.maximum(after_s, self._problem.options.floor_s)
        moves_s = self._problem.options.move_cost_s * moves
        good = (after_s < limit_s * _CLEARLY_LESS) & (limit_s - reached > moves_s)
        # Ties: below the floor the smaller load, and of equal loads the one with fewer moves.
        return np.where(good, reached + moves_s + 1e-6 * after_s + 1e-9 * limit_s * moves, np.inf)

    def _idlest(self, solutions: Int64s) -> tuple[Int64s, Bools]:
        """The members of least load that may be given something, and which of them are not the slow one."""
        closed, loads_s = self._problem.group.closed, self._loads_s[solutions]
        members = np.argsort(loads_s, axis=1, kind="stable")
        if closed is not None:
            members = members[~closed[members]].reshape(len(members), -1)
        members = members[:, :_CHAIN_MEMBERS]
        return members, members != self._slow[solutions][:, None]


def _least_of_each(k: Int64s, cost_s: Floats, *, first: Bools | None = None) -> dict[int, int]:
    """Where the least finite cost of each solution is, in any order; of equal ones that which is first, and earliest.

    Args:
        k: The solution of each cost.
        cost_s: Costs.
        first: Those that come first.
    """
    least_s = np.full(int(k.max()) + 1, np.inf)
    np.minimum.at(least_s, k, cost_s)
    few = np.nonzero((cost_s == least_s[k]) & (cost_s < np.inf))[0]
    if first is not None:
        few = few[np.argsort(~first[few], kind="stable")]
    found: dict[int, int] = {}
    for of_k, at in zip(k[few].tolist(), few.tolist(), strict=True):
        found.setdefault(of_k, at)
    return found


def _trimmed(candidates: Int64s) -> Int64s:
    """The candidates without the columns in which nobody has one; those of a member are in the first columns."""
    return candidates[..., : int((candidates >= 0).sum(axis=-1).max(initial=0))]


def _moves_worth(load_s: float, options: Options) -> int:
    """Most moves that a step may add and still gain more than they cost: no load counts as less than the floor."""
    if options.move_cost_s == 0:
        return _MOST_ADDED
    return int(max(load_s - options.floor_s, 0.0) / options.move_cost_s * (1 + _ROUNDING))
