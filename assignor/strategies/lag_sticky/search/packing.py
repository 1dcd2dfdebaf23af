"""One attempt at a deadline: what is given up finds a place, heaviest first, or the attempt is over."""

import heapq
from collections.abc import Iterator

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from assignor.strategies.lag_sticky.problem import Problem
from assignor.strategies.lag_sticky.search.candidates import Shelves
from assignor.strategies.lag_sticky.search.deadline import Deadline, fewest
from assignor.strategies.lag_sticky.search.residual_capacity import Rooms, rooms

_CLEARLY_LESS = 1 - 1e-12


class Filler:
    """Makes attempts at deadlines; keeps what they have in common."""

    def __init__(
        self, problem: Problem, shelf: Shelves, loose: Int64s, slowest: tuple[Int64s, Floats], budget: int
    ) -> None:
        """Attempts within a budget of moves.

        Args:
            problem: The group.
            shelf: What each member holds, without `loose`.
            loose: Partitions that are placed anew by every attempt, for that costs no move.
            slowest: Partitions that take longest with the fastest of their readers to themselves, and how long.
            budget: Most moves.
        """
        self._problem = problem
        self._shelf = shelf
        self._loose = loose
        self._budget = budget
        self._slowest, self._slowest_s = slowest
        self._count = problem.start_count - np.bincount(problem.start[loose], minlength=problem.n_members)

    def attempts(self, time_s: float, excused_s: float) -> Iterator[dict[int, int]]:
        """Where given-up and loose partitions go, for each way to meet the deadline that was found.

        Args:
            time_s: The deadline.
            excused_s: The deadline of members that have a partition nobody drains by `time_s`; they take nothing.
        """
        problem = self._problem
        deadline = Deadline(problem, self._shelf, self._loose, time_s)
        hopeless = self._slowest[self._slowest_s > time_s * (1 + 1e-9)]
        excused = np.zeros(problem.n_members, np.bool_)
        excused[problem.start[hopeless]] = True
        loose = self._loose[~np.isin(self._loose, hopeless)]
        later = Deadline(problem, self._shelf, loose, excused_s) if excused.any() else deadline
        for keep_heaviest in (False, True):
            given_up = np.concatenate(
                (
                    deadline.given_up(~excused, keep_heaviest=keep_heaviest),
                    later.given_up(excused, keep_heaviest=True),
                )
            )
            if int((problem.home[given_up] >= 0).sum()) <= self._budget:
                for tight in (False, True):
                    places = self._filled(deadline, given_up, loose, excused, tight=tight)
                    if places is not None:
                        yield places

    def _filled(
        self, deadline: Deadline, given_up: Int64s, loose: Int64s, excused: Bools, *, tight: bool
    ) -> dict[int, int] | None:
        count = self._count - np.bincount(self._problem.start[given_up], minlength=self._problem.n_members)
        room = deadline.room.copy()
        np.add.at(room, self._problem.start[given_up], deadline.weight(given_up))
        open_rooms = rooms(self._problem, room, count, excused)
        filling = _Filling(self._problem, deadline, open_rooms, self._budget)
        filling.begin(given_up, loose)
        return filling.places if filling.fill(tight=tight) else None


class _Filling:
    def __init__(self, problem: Problem, deadline: Deadline, open_rooms: Rooms, budget: int) -> None:
        self._problem = problem
        self._deadline = deadline
        self._rooms = open_rooms
        self._budget = budget
        self._given_up: set[int] = set()
        self._pool: list[tuple[float, int]] = []
        self.places: dict[int, int] = {}

    def begin(self, given_up: Int64s, loose: Int64s) -> None:
        """Partitions that need a place: those given up, for which there is room already, and others."""
        self._count_out(given_up)
        pids = np.concatenate((given_up, loose))
        self._pool = list(zip((-self._deadline.weight(pids)).tolist(), pids.tolist(), strict=True))
        heapq.heapify(self._pool)

    def _count_out(self, pids: Int64s) -> None:
        self._given_up.update(pids.tolist())
        self._budget -= int((self._problem.home[pids] >= 0).sum())

    def _give_up(self, pids: Int64s) -> None:
        self._count_out(pids)
        for pid, weight in zip(pids.tolist(), self._deadline.weight(pids).tolist(), strict=True):
            self._rooms.change(int(self._problem.start[pid]), weight=-weight, count=-1)
            heapq.heappush(self._pool, (-weight, pid))

    def fill(self, *, tight: bool) -> bool:
        """Find a place for everything in the pool; False when something has none within the budget."""
        while self._pool:
            minus_weight, pid = heapq.heappop(self._pool)
            member = self._place(pid, -minus_weight, tight=tight)
            if member < 0:
                return False
            self._rooms.change(member, weight=-minus_weight, count=1)
            self.places[pid] = member
        return True

    def _place(self, pid: int, weight: float, *, tight: bool) -> int:
        need = weight - self._deadline.tolerance
        find = self._rooms.tightest if tight else self._rooms.roomiest
        member = find(pid, need)
        return member if member >= 0 else self._make_room(pid, weight)

    def _make_room(self, pid: int, weight: float) -> int:
        """The member that gives up the fewest lighter partitions of a few with most room; -1 for none."""
        for member in self._rooms.roomiest_few(pid):
            out = self._lighter(member, weight)
            if out is not None and int((self._problem.home[out] >= 0).sum()) <= self._budget:
                self._give_up(out)
                return member
        return -1

    def _lighter(self, member: int, weight: float) -> Int64s | None:
        """The fewest partitions, each lighter, that must go for so much weight to have room."""
        for whole in (False, True):
            pids, weights = self._deadline.shelf(member, whole=whole)
            here = np.array([p not in self._given_up for p in pids.tolist()], np.bool_)
            lighter = np.nonzero(here & (weights < weight * _CLEARLY_LESS))[0]
            picks = fewest(weights[lighter], weight - self._rooms.room(member))
            if picks is not None:
                return pids[lighter[picks]]
        return None
