"""Residual capacity of members, to be asked where a partition fits: the bins of a packing.

A sorted list where anybody may read anything, so that a query is a bisection; a scan of the readers otherwise.
"""

from bisect import bisect_left, insort
from typing import Protocol

import numpy as np

from assignor.model.arrays import Bools, Floats, Int32s, Int64s
from assignor.strategies.lag_sticky.problem import Problem

# Members that packing asks to evict something before it gives up; most room left means least to evict.
_FEW = 8


class ResidualCapacity(Protocol):
    """Residual capacity of the members that are open: below the cap on counts, and not excluded."""

    def of(self, member: int) -> float:
        """Weight the member can still take; negative when it has too much already."""

    def best_fit(self, partition: int, weight: float) -> int:
        """The member with the least residual capacity that is enough; -1 when there is none."""

    def worst_fit(self, partition: int, weight: float) -> int:
        """The member with the most residual capacity if that is enough; -1 otherwise."""

    def worst_fits(self, partition: int) -> list[int]:
        """A few members with the most residual capacity, the most first, enough or not."""

    def change(self, member: int, *, weight: float, count: int) -> None:
        """Add weight and partitions to the member; negative numbers take away."""

    def open_residual(self) -> Floats:
        """Residual capacity of each member, `-inf` of those that are excluded."""

    def counts(self) -> Int64s:
        """Partitions of each member."""

    def copy(self) -> "ResidualCapacity":
        """The same, to be changed apart from this one."""


def residual_capacity(problem: Problem, residual: Floats, count: Int64s, excluded: Bools) -> ResidualCapacity:
    """The implementation that suits the subscriptions.

    Args:
        problem: The group.
        residual: Residual capacity of each member.
        count: Partitions of each member.
        excluded: Members that take nothing.
    """
    if problem.may_read is None:
        return _sorted_members(residual, count, excluded, problem.cap)
    return _ScannedReaders(problem, residual, count, excluded)


class _SortedMembers:
    # Python lists: single elements of numpy arrays cost several times as much to read and write.

    def __init__(
        self,
        residual: list[float],
        count: list[int],
        excluded: list[bool],
        cap: int,
        ranked: list[tuple[float, int]],
    ) -> None:
        self._residual = residual
        self._count = count
        self._excluded = excluded
        self._cap = cap
        # Ascending by residual, and of equal ones the first member last, so that worst fit finds it first.
        self._ranked = ranked

    def _is_open(self, member: int) -> bool:
        return not self._excluded[member] and self._count[member] < self._cap

    def of(self, member: int) -> float:
        residual: float = self._residual[member]
        return residual

    def best_fit(self, partition: int, weight: float) -> int:  # noqa: ARG002  anybody may have it
        # Best fit decreasing: what is nearly full is filled, so that room for heavy ones stays whole (Johnson 1974).
        at = bisect_left(self._ranked, (weight, -len(self._residual)))
        return -self._ranked[at][1] if at < len(self._ranked) else -1

    def worst_fit(self, partition: int, weight: float) -> int:  # noqa: ARG002  anybody may have it
        return -self._ranked[-1][1] if self._ranked and self._ranked[-1][0] >= weight else -1

    def worst_fits(self, partition: int) -> list[int]:  # noqa: ARG002  anybody may have it
        return [-minus_member for _, minus_member in self._ranked[: -_FEW - 1 : -1]]

    def change(self, member: int, *, weight: float, count: int) -> None:
        # Taken out under its old key, and put in again under the new one, so the list stays sorted.
        if self._is_open(member):
            del self._ranked[bisect_left(self._ranked, (self._residual[member], -member))]
        self._residual[member] -= weight
        self._count[member] += count
        if self._is_open(member):
            insort(self._ranked, (self._residual[member], -member))

    def open_residual(self) -> Floats:
        return np.where(self._excluded, -np.inf, self._residual)

    def counts(self) -> Int64s:
        return np.array(self._count, np.int64)

    def copy(self) -> "_SortedMembers":
        lists = self._residual.copy(), self._count.copy(), self._excluded, self._cap, self._ranked.copy()
        return _SortedMembers(*lists)


def _sorted_members(residual: Floats, count: Int64s, excluded: Bools, cap: int) -> _SortedMembers:
    is_open = (~excluded & (count < cap)).nonzero()[0]
    rooms = residual[is_open]
    order = np.lexsort((-is_open, rooms))
    ranked = list(zip(rooms[order].tolist(), (-is_open[order]).tolist(), strict=True))
    return _SortedMembers(residual.tolist(), count.tolist(), excluded.tolist(), cap, ranked)


class _ScannedReaders:
    def __init__(self, problem: Problem, residual: Floats, count: Int64s, excluded: Bools) -> None:
        self._problem = problem
        self._residual = residual.copy()
        self._count = count.copy()
        self._excluded = excluded
        self._open_residual = np.where(excluded | (count >= problem.cap), -np.inf, residual)

    def _readers(self, partition: int) -> Int32s:
        return self._problem.group.takers.set_members(int(self._problem.set_of[partition]))

    def of(self, member: int) -> float:
        return float(self._residual[member])

    def best_fit(self, partition: int, weight: float) -> int:
        readers = self._readers(partition)
        residual = self._open_residual[readers]
        enough = np.where(residual >= weight, residual, np.inf)
        best = int(enough.argmin())
        return int(readers[best]) if np.isfinite(enough[best]) else -1

    def worst_fit(self, partition: int, weight: float) -> int:
        # The first of equals, as in the sorted list: both kinds of groups break ties alike.
        readers = self._readers(partition)
        best = int(self._open_residual[readers].argmax())
        return int(readers[best]) if self._open_residual[readers[best]] >= weight else -1

    def worst_fits(self, partition: int) -> list[int]:
        readers = self._readers(partition)
        few = readers[np.argsort(-self._open_residual[readers], kind="stable")[:_FEW]]
        return [m for m in few.tolist() if np.isfinite(self._open_residual[m])]

    def change(self, member: int, *, weight: float, count: int) -> None:
        self._residual[member] -= weight
        self._count[member] += count
        is_closed = self._excluded[member] or self._count[member] >= self._problem.cap
        self._open_residual[member] = -np.inf if is_closed else self._residual[member]

    def open_residual(self) -> Floats:
        return np.where(self._excluded, -np.inf, self._residual)

    def counts(self) -> Int64s:
        count: Int64s = self._count.copy()
        return count

    def copy(self) -> "_ScannedReaders":
        return _ScannedReaders(self._problem, self._residual, self._count, self._excluded)
