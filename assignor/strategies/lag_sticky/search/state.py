"""A plan while it is being improved step by step: loads, counts, and what each member could give."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from assignor.model.arrays import Floats, Int64s
from assignor.strategies.lag_sticky.problem import Plan, Problem
from assignor.strategies.lag_sticky.search.candidates import Shelves

_WIDTH = 24
_HEAVY = 12


class Transfer(NamedTuple):
    """One partition from one member to another."""

    pid: int
    giver: int
    taker: int


class Standing:
    """Loads of a plan, kept up to date."""

    def __init__(self, problem: Problem, shelf: Shelves, loose: Int64s, plan: Plan, time_s: float) -> None:
        """The standing of `plan`.

        Args:
            problem: The group.
            shelf: What each member holds at the start, without `loose`.
            loose: Partitions that are on no shelf.
            plan: Where to begin.
            time_s: Partitions are looked at heaviest first, by weight at this time.
        """
        self.problem = problem
        self.lag = plan.lag.copy()
        self.rate = plan.rate.copy()
        self.moves = plan.moves
        self.places = plan.changes()
        self.count = problem.counts(plan)
        self._weigh_at_s = time_s
        self._held: dict[int, Int64s] = {}
        self._shelf = shelf
        self.rows = _shortened(shelf.table)
        """N x width: partitions each member could give, heaviest first; -1 fills up."""
        self._put_in_place(loose, plan)

    def _put_in_place(self, loose: Int64s, plan: Plan) -> None:
        moved = set(plan.pid.tolist())
        for pid, origin, member in zip(
            plan.pid.tolist(), self.problem.start[plan.pid].tolist(), plan.to.tolist(), strict=True
        ):
            self._take_from(origin, pid)
            self._add_to(member, pid)
        still = [pid for pid in loose.tolist() if pid not in moved]
        for pid in still:
            self._add_to(int(self.problem.start[pid]), pid)
        for member in self._held:
            self._refresh(member)

    def pressures(self) -> Floats:
        """`Price.pressure_s` of each member."""
        return self.problem.price.pressure_s(self.lag, self.rate, self.problem.capacity)

    def apply(self, transfers: Sequence[Transfer], moves: int) -> None:
        """Carry the transfers out; `moves` is what they add to the moves of the plan."""
        for pid, giver, taker in transfers:
            lag, rate = self.problem.lag[pid], self.problem.rate[pid]
            self.lag[giver] -= lag
            self.rate[giver] -= rate
            self.lag[taker] += lag
            self.rate[taker] += rate
            self.count[giver] -= 1
            self.count[taker] += 1
            self.places[pid] = taker
            self._take_from(giver, pid)
            self._add_to(taker, pid)
            self._refresh(giver)
            self._refresh(taker)
        self.moves += moves

    def plan(self) -> Plan:
        """The plan as it stands."""
        return self.problem.plan(self.places)

    def _items(self, member: int) -> Int64s:
        if member not in self._held:
            row = self._shelf.table[member]
            self._held[member] = row[row >= 0]
        return self._held[member]

    def _take_from(self, member: int, pid: int) -> None:
        held = self._items(member)
        self._held[member] = held[held != pid]

    def _add_to(self, member: int, pid: int) -> None:
        self._held[member] = np.append(self._items(member), pid)

    def _refresh(self, member: int) -> None:
        held = self._held[member]
        weight = self.problem.lag[held] + self.problem.rate[held] * self._weigh_at_s
        held = held[np.lexsort((held, -weight))]
        row = _shortened(held[None, :])[0]
        self.rows[member] = -1
        self.rows[member, : min(len(row), self.rows.shape[1])] = row[: self.rows.shape[1]]


def _shortened(table: Int64s) -> Int64s:
    """The heaviest of each row and a sample of the rest."""
    width = table.shape[1]
    if width <= _WIDTH:
        padded = np.full((len(table), _WIDTH), -1, np.int64)
        padded[:, :width] = table
        return padded
    held = (table >= 0).sum(axis=1)[:, None]
    column = np.arange(_WIDTH)[None, :]
    step = np.maximum(held - 1 - _HEAVY, 0) / (_WIDTH - 1 - _HEAVY)
    spread = _HEAVY + np.floor((column - _HEAVY) * step).astype(np.int64)
    rank = np.where((held <= _WIDTH) | (column < _HEAVY), column, spread)
    return np.take_along_axis(table, np.minimum(rank, width - 1), 1)
