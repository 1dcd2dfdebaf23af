"""The solution that local search improves: loads, counts, and the candidates of each member."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from assignor.model.arrays import Floats, Int64s
from assignor.strategies.lag_sticky.problem import Problem, Solution
from assignor.strategies.lag_sticky.search.candidates import Candidates

# A step looks at so many candidates of a member whatever it holds, so its time does not grow with the group.
_WIDTH = 24
_HEAVY = 12


class Transfer(NamedTuple):
    """One partition from one member to another; a move only if it leaves its current owner by it."""

    partition: int
    from_member: int
    to_member: int


class SearchState:
    """Loads, counts and candidates of a solution, kept up to date from step to step."""

    def __init__(
        self, problem: Problem, candidates: Candidates, unowned: Int64s, initial: Solution, time_s: float
    ) -> None:
        """The state of `initial`.

        Args:
            problem: The group.
            candidates: What each member holds at the start, without `unowned`.
            unowned: Partitions that are no candidates at the start.
            initial: The solution to begin with.
            time_s: Candidates are ranked by their weight at this time, the heaviest first.
        """
        self.problem = problem
        self.lag = initial.lag.copy()
        self.rate = initial.rate.copy()
        self.moves = initial.moves
        self.changes = initial.changes()
        self.count = problem.counts(initial)
        self._weigh_at_s = time_s
        self._held: dict[int, Int64s] = {}
        self._start_candidates = candidates
        self.candidates = _sampled(candidates.table)
        """N x width: partitions each member could lose, heaviest first; padded with -1."""
        self._add_changes(unowned, initial)

    def _add_changes(self, unowned: Int64s, initial: Solution) -> None:
        """Bring the candidates of the start in line with the initial solution."""
        moved = set(initial.partitions.tolist())
        for partition, origin, member in zip(
            initial.partitions.tolist(),
            self.problem.start[initial.partitions].tolist(),
            initial.to_member.tolist(),
            strict=True,
        ):
            self._remove(origin, partition)
            self._add(member, partition)
        for partition in unowned.tolist():
            if partition not in moved:
                self._add(int(self.problem.start[partition]), partition)
        for member in self._held:
            self._refresh(member)

    def loads_s(self) -> Floats:
        """`CostModel.load_s` of each member."""
        return self.problem.cost_model.load_s(self.lag, self.rate, self.problem.capacity)

    def apply(self, transfers: Sequence[Transfer], moves: int) -> None:
        """Carry the transfers out; `moves` is what they add to the moves of the solution."""
        for partition, from_member, to_member in transfers:
            lag, rate = self.problem.lag[partition], self.problem.rate[partition]
            self.lag[from_member] -= lag
            self.rate[from_member] -= rate
            self.lag[to_member] += lag
            self.rate[to_member] += rate
            self.count[from_member] -= 1
            self.count[to_member] += 1
            self.changes[partition] = to_member
            self._remove(from_member, partition)
            self._add(to_member, partition)
            self._refresh(from_member)
            self._refresh(to_member)
        self.moves += moves

    def solution(self) -> Solution:
        """The solution as it stands, its figures summed anew so that rounding does not pile up over the steps."""
        return self.problem.solution(self.changes)

    def _held_by(self, member: int) -> Int64s:
        # Copied on first use: most members are never touched.
        if member not in self._held:
            row = self._start_candidates.table[member]
            self._held[member] = row[row >= 0]
        return self._held[member]

    def _remove(self, member: int, partition: int) -> None:
        # A scan, since members hold few of the partitions and are touched seldom.
        held = self._held_by(member)
        self._held[member] = held[held != partition]

    def _add(self, member: int, partition: int) -> None:
        self._held[member] = np.append(self._held_by(member), partition)

    def _refresh(self, member: int) -> None:
        held = self._held[member]
        weight = self.problem.lag[held] + self.problem.rate[held] * self._weigh_at_s
        # The partition index breaks ties, so that the order of earlier steps does not matter.
        held = held[np.lexsort((held, -weight))]
        row = _sampled(held[None, :])[0]
        self.candidates[member] = -1
        self.candidates[member, : min(len(row), self.candidates.shape[1])] = row[: self.candidates.shape[1]]


def _sampled(table: Int64s) -> Int64s:
    """The heaviest of each row and a sample of the rest."""
    # Heavy ones carry load, and small ones of every size fill what is left: a sample evenly spread over the ranks
    # has some of each size.
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
