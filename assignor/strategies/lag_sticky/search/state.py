"""The solution that local search improves: loads, counts, and the candidates of each member."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

from assignor.model.arrays import Floats, Int64s
from assignor.strategies.lag_sticky.problem import Problem, Solution
from assignor.strategies.lag_sticky.search.candidates import Candidates, sampled_ranks


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
        self.digest = 0
        """Differs from one assignment to another, however either came about (Zobrist 1970)."""
        for change in self.changes.items():
            self.digest ^= hash(change)
        self.count = problem.counts(initial)
        self._loads_s: Floats = initial.member_loads_s.copy()
        self._weigh_at_s = time_s
        self._held: dict[int, list[tuple[float, int]]] = {}
        self._initial: Solution | None = initial
        """The solution as it was; None once it has changed."""
        self._start_candidates = candidates
        self.candidates = candidates.few.copy()
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
        """`CostModel.load_s` of each member; changes with every step."""
        return self._loads_s

    def apply(self, transfers: Sequence[Transfer], moves: int) -> None:
        """Carry the transfers out; `moves` is what they add to the moves of the solution."""
        self._initial = None
        for partition, from_member, to_member in transfers:
            lag, rate = self.problem.lag[partition], self.problem.rate[partition]
            self.lag[from_member] -= lag
            self.rate[from_member] -= rate
            self.lag[to_member] += lag
            self.rate[to_member] += rate
            self.count[from_member] -= 1
            self.count[to_member] += 1
            # A partition at its start is no change.
            if from_member != self.problem.start[partition]:
                self.digest ^= hash((partition, from_member))
            if to_member != self.problem.start[partition]:
                self.digest ^= hash((partition, to_member))
            self.changes[partition] = to_member
            self._remove(from_member, partition)
            self._add(to_member, partition)
        for member in {member for transfer in transfers for member in transfer[1:]}:
            self._refresh(member)
            self._reload(member)
        self.moves += moves

    def solution(self) -> Solution:
        """The solution as it stands, its figures summed anew so that rounding does not pile up over the steps."""
        return self._initial or self.problem.solution(self.changes)

    def _held_by(self, member: int) -> list[tuple[float, int]]:
        """What the member holds, heaviest first: minus the weight, and the partition, which breaks ties."""
        # Copied on first use: most members are never touched.
        if member not in self._held:
            row = self._start_candidates.table[member]
            row = row[row >= 0]
            weight = self.problem.lag[row] + self.problem.rate[row] * self._weigh_at_s
            self._held[member] = sorted(zip((-weight).tolist(), row.tolist(), strict=True))
        return self._held[member]

    def _entry(self, partition: int) -> tuple[float, int]:
        problem = self.problem
        return -float(problem.lag[partition] + problem.rate[partition] * self._weigh_at_s), partition

    def _remove(self, member: int, partition: int) -> None:
        held, entry = self._held_by(member), self._entry(partition)
        at = bisect_left(held, entry)
        # What lies outside the table of candidates was never listed.
        if at < len(held) and held[at] == entry:
            del held[at]

    def _add(self, member: int, partition: int) -> None:
        insort(self._held_by(member), self._entry(partition))

    def _refresh(self, member: int) -> None:
        # The table has a fixed width, so that the search scores all members in one expression.
        held = self._held[member]
        row, width = self.candidates[member], self.candidates.shape[1]
        if len(held) > width:
            row[:] = [held[rank][1] for rank in sampled_ranks(len(held))]
        else:
            row[: len(held)] = [partition for _, partition in held]
            row[len(held) :] = -1

    def _reload(self, member: int) -> None:
        # Scalars: a step changes two or three members, and numpy costs more than the sums.
        lag, rate = float(self.lag[member]), float(self.rate[member])
        capacity = float(self.problem.capacity[member])
        self._loads_s[member] = self.problem.cost_model.load_of_one_s(lag, rate, capacity)
