"""Which member has room for a partition: as a sorted list where anybody may have it, otherwise among readers."""

from bisect import bisect_left, insort
from typing import Protocol

import numpy as np

from assignor.model.arrays import Bools, Floats, Int32s, Int64s
from assignor.strategies.lag_sticky.problem import Problem

_FEW = 8


class Rooms(Protocol):
    """Room of the members that are open: not full by count, and not excused."""

    def room(self, member: int) -> float:
        """What the member can still take; negative when it has too much already."""

    def tightest(self, pid: int, weight: float) -> int:
        """The member with the least room that is enough; -1 when there is none."""

    def roomiest(self, pid: int, weight: float) -> int:
        """The member with the most room if that is enough; -1 otherwise."""

    def roomiest_few(self, pid: int) -> list[int]:
        """Some members of most room, the most first."""

    def change(self, member: int, *, weight: float, count: int) -> None:
        """The member gets, or for negative numbers gives, so much."""


def rooms(problem: Problem, room: Floats, count: Int64s, closed: Bools) -> Rooms:
    """The form that suits the subscriptions.

    Args:
        problem: The group.
        room: Of each member.
        count: Partitions of each member.
        closed: Members that take nothing.
    """
    if problem.may_read is None:
        return _AnybodysRooms(room, count, closed, problem.cap)
    return _ReadersRooms(problem, room, count, closed)


class _AnybodysRooms:
    def __init__(self, room: Floats, count: Int64s, closed: Bools, cap: int) -> None:
        self._room = room.tolist()
        self._count = count.tolist()
        self._closed = closed.tolist()
        self._cap = cap
        # Rising by room, and of equal rooms the first member last.
        self._ranked = sorted((room, -m) for m, room in enumerate(self._room) if self._is_open(m))

    def _is_open(self, member: int) -> bool:
        return not self._closed[member] and self._count[member] < self._cap

    def room(self, member: int) -> float:
        room: float = self._room[member]
        return room

    def tightest(self, pid: int, weight: float) -> int:  # noqa: ARG002  anybody may have it
        at = bisect_left(self._ranked, (weight, -len(self._room)))
        return -self._ranked[at][1] if at < len(self._ranked) else -1

    def roomiest(self, pid: int, weight: float) -> int:  # noqa: ARG002  anybody may have it
        return -self._ranked[-1][1] if self._ranked and self._ranked[-1][0] >= weight else -1

    def roomiest_few(self, pid: int) -> list[int]:  # noqa: ARG002  anybody may have it
        return [-minus_member for _, minus_member in self._ranked[: -_FEW - 1 : -1]]

    def change(self, member: int, *, weight: float, count: int) -> None:
        if self._is_open(member):
            del self._ranked[bisect_left(self._ranked, (self._room[member], -member))]
        self._room[member] -= weight
        self._count[member] += count
        if self._is_open(member):
            insort(self._ranked, (self._room[member], -member))


class _ReadersRooms:
    def __init__(self, problem: Problem, room: Floats, count: Int64s, closed: Bools) -> None:
        self._problem = problem
        self._room = room.copy()
        self._count = count.copy()
        self._closed = closed
        self._visible = np.where(closed | (count >= problem.cap), -np.inf, room)

    def _readers(self, pid: int) -> Int32s:
        return self._problem.group.subscriptions.set_members(int(self._problem.set_of[pid]))

    def room(self, member: int) -> float:
        return float(self._room[member])

    def tightest(self, pid: int, weight: float) -> int:
        readers = self._readers(pid)
        room = self._visible[readers]
        enough = np.where(room >= weight, room, np.inf)
        best = int(enough.argmin())
        return int(readers[best]) if np.isfinite(enough[best]) else -1

    def roomiest(self, pid: int, weight: float) -> int:
        readers = self._readers(pid)
        best = int(self._visible[readers].argmax())
        return int(readers[best]) if self._visible[readers[best]] >= weight else -1

    def roomiest_few(self, pid: int) -> list[int]:
        readers = self._readers(pid)
        few = readers[np.argsort(-self._visible[readers], kind="stable")[:_FEW]]
        return [m for m in few.tolist() if np.isfinite(self._visible[m])]

    def change(self, member: int, *, weight: float, count: int) -> None:
        self._room[member] -= weight
        self._count[member] += count
        shut = self._closed[member] or self._count[member] >= self._problem.cap
        self._visible[member] = -np.inf if shut else self._room[member]
