"""The problem that `lag-sticky` solves: start, cost of moves, and comparison of solutions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from assignor.evaluation.drain.cost import CostModel
from assignor.evaluation.drain.time import summed
from assignor.model.arrays import Bools, Floats, Int32s, Int64s
from assignor.model.group import Group
from assignor.strategies.lag_sticky.options import Options

_SAME = 1e-3
"""Share by which times must differ to count as different: rates are not known more precisely."""


class Changes(NamedTuple):
    """The partitions that are not where they start, ascending, and the member of each."""

    partitions: Int64s
    to_member: Int32s

    @property
    def key(self) -> bytes:
        """Equal for equal assignments."""
        return self.partitions.tobytes() + self.to_member.tobytes()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """An assignment, stored as its difference from the start, with its figures."""

    partitions: Int64s
    """Partitions that are not at their start, ascending."""
    to_member: Int32s
    """The member of each of them."""
    moves: int
    """Partitions that leave a current owner which may keep them."""
    lag: Floats
    """Records of lag of each of N members."""
    rate: Floats
    """Records per second that arrive at each member."""
    makespan_s: float
    """Drain time of the slowest member, as `CostModel.finite_drain_s`."""
    member_loads_s: Floats
    """`CostModel.load_s` of each member."""
    loads_s: Floats
    """The same sorted from the largest down, 0 up to the floor."""
    lag_area: float
    """Lag area of the group, record-seconds."""

    def changes(self) -> dict[int, int]:
        """Member of each partition that is not at its start."""
        return dict(zip(self.partitions.tolist(), self.to_member.tolist(), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """A group, where its partitions start, and the options.

    Arrays by partition have P + 1 entries. The last one, a partition without lag and arrivals, lets the index -1
    stand for "no partition" in vectorised expressions without a branch.
    """

    group: Group
    options: Options
    cost_model: CostModel
    capacity: Floats
    lag: Floats
    rate: Floats
    current_owner: Int64s
    """The member from which taking the partition counts as a move; -1 where any member costs nothing."""
    start: Int32s
    """Member of each partition at the start; -1 for none."""
    start_lag: Floats
    """Lag of each member at the start."""
    start_rate: Floats
    """Arrival rate of each member at the start."""
    start_count: Int64s
    """Partitions of each member at the start."""
    cap: int
    """Most partitions of a member."""
    may_read: Bools | None
    """Subscriber sets x members: whether the member may get the partitions; None if all members may get all."""
    set_of: Int32s
    """Subscriber set of each partition."""
    fixed: Bools | None = None
    """P entries: partitions that stay where they start; None when there are none."""

    @property
    def n_members(self) -> int:
        """Number of members, N."""
        return self.group.n_members

    def readers_of(self, partition: int) -> list[int]:
        """Members that may be given a partition, ascending."""
        if self.may_read is None:
            return list(range(self.n_members))
        readers: list[int] = self.group.takers.set_members(int(self.set_of[partition])).tolist()
        return readers

    def without_fixed(self, member: Int32s) -> Int32s:
        """These members of the partitions, -1 for those that are fixed."""
        return member if self.fixed is None else np.where(self.fixed, np.int32(-1), member)

    def fixed_on_members(self) -> tuple[Floats, Floats, Int64s]:
        """Lag, arrival rate and number of the partitions that are fixed on each member."""
        n = self.n_members
        if self.fixed is None:
            return np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
        fixed = np.nonzero(self.fixed)[0]
        member = self.start[fixed]
        lag, rate = (summed(values[fixed], by=member, n=n) for values in (self.lag, self.rate))
        return lag, rate, np.bincount(member, minlength=n)

    def member(self, solution: Solution) -> Int32s:
        """Member of each partition."""
        member: Int32s = self.start[:-1].copy()
        member[solution.partitions] = solution.to_member
        return member

    def solution(self, changes: Mapping[int, int]) -> Solution:
        """The solution that puts these partitions on these members and leaves the others."""
        return self.evaluated([self.changed(changes)])[0]

    def solution_of(self, member: Int32s) -> Solution:
        """The solution that gives the partitions to these members."""
        partitions = np.nonzero(member != self.start[:-1])[0]
        return self.evaluated([Changes(partitions, member[partitions])])[0]

    def changed(self, changes: Mapping[int, int]) -> Changes:
        """These changes without those that put a partition where it starts."""
        partitions = np.fromiter(changes.keys(), np.int64, len(changes))
        to_member = np.fromiter(changes.values(), np.int32, len(changes))
        # A move there and back leaves no trace, so that equal assignments are equal solutions.
        is_change = self.start[partitions] != to_member
        partitions, to_member = partitions[is_change], to_member[is_change]
        # Sorted, so that sums add in one order and equal solutions get equal figures.
        order = partitions.argsort()
        return Changes(partitions[order], to_member[order])

    def evaluated(self, found: Sequence[Changes]) -> list[Solution]:
        """The solution of each of these changes: many take hardly longer than one, for a group of few members."""
        if not found:
            return []
        k, n = len(found), self.n_members
        row = np.repeat(np.arange(k), [len(one.partitions) for one in found])
        partitions, to_member = (np.concatenate(of_all) for of_all in zip(*found, strict=True))
        gains, loses = row * n + to_member, row * n + self.start[partitions]

        def sums(start: Floats, values: Floats) -> Floats:
            gained, lost = (summed(values[partitions], by=by, n=k * n).reshape(k, n) for by in (gains, loses))
            # Sums of floats do not cancel exactly; a tiny negative rest is no load.
            changed: Floats = np.maximum(start + gained - lost, 0.0)
            return changed

        lag, rate = sums(self.start_lag, self.lag), sums(self.start_rate, self.rate)
        times_s = self.cost_model.finite_drain_s(lag, rate, self.capacity)
        member_loads_s = self.cost_model.load_of_times_s(times_s, rate, self.capacity)
        # Loads up to the floor count as 0, so that no comparison rewards moves below it.
        loads_s = -np.sort(-np.where(member_loads_s > self.options.floor_s, member_loads_s, 0.0), axis=1)
        owner = self.current_owner[partitions]
        moves = np.bincount(row[(owner >= 0) & (owner != to_member)], minlength=k)
        areas = self.cost_model.lag_area(lag, rate, self.capacity).sum(axis=1)
        figures = zip(moves.tolist(), times_s.max(axis=1, initial=0.0).tolist(), areas.tolist(), strict=True)
        return [
            Solution(
                partitions=one.partitions,
                to_member=one.to_member,
                moves=of_moves,
                lag=lag[at],
                rate=rate[at],
                makespan_s=makespan_s,
                member_loads_s=member_loads_s[at],
                loads_s=loads_s[at],
                lag_area=lag_area,
            )
            for at, (one, (of_moves, makespan_s, lag_area)) in enumerate(zip(found, figures, strict=True))
        ]

    def counts(self, solution: Solution) -> Int64s:
        """Partitions of each member."""
        n = self.n_members
        # From the difference alone: a solution of few moves costs as little in a group of a million partitions.
        gone = np.bincount(self.start[solution.partitions], minlength=n)
        return self.start_count - gone + np.bincount(solution.to_member, minlength=n)

    def lag_area(self, solution: Solution) -> Floats:
        """Lag area of each member, record-seconds."""
        return self.cost_model.lag_area(solution.lag, solution.rate, self.capacity)

    def standstill_area(self, solution: Solution) -> Floats:
        """Lag area of each member if nothing had been read for `floor_s`, record-seconds."""
        lag = solution.lag + solution.rate * self.options.floor_s
        return self.cost_model.lag_area(lag, solution.rate, self.capacity)

    def pause_cost(self, partitions: Int64s, to_member: Int32s) -> Floats:
        """Record-seconds of lag that build up while each partition changes to its member."""
        pause_s = self.options.move_pause_s
        waiting = self.lag[partitions] + self.rate[partitions] * pause_s
        # Records that the member could not have read without the pause wait anyway.
        return np.minimum(waiting, self.capacity[to_member] * pause_s) * pause_s

    def is_better(self, new: Solution, old: Solution) -> bool:
        """Whether `new` is the better solution.

        The loads are compared lexicographically, the slowest members first, up to the first pair that differs;
        there `new` must be sooner by the cost of the moves it has more. If no pair differs, the smaller lag area
        decides, then the fewer moves. Comparing only the slowest member would leave all others as they are as
        soon as that one cannot be helped.
        """
        # Lexicographic min-max: the answer is leximin optimal where the search is exact (Ogryczak 1997).
        apart = np.abs(new.loads_s - old.loads_s) > _SAME * np.maximum(new.loads_s, old.loads_s)
        if apart.any():
            k = int(apart.argmax())
            cost_s = self.options.move_cost_s * (new.moves - old.moves)
            return bool(new.loads_s[k] + cost_s < old.loads_s[k])
        if abs(new.lag_area - old.lag_area) > _SAME * max(new.lag_area, old.lag_area):
            return new.lag_area < old.lag_area
        return new.moves < old.moves
