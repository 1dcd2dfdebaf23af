"""Partitions that nobody owns, dealt to members: the heaviest one by one, the rest a round at a time."""

import heapq

import numpy as np

from assignor.evaluation.drain.shares import poured
from assignor.evaluation.drain.time import summed
from assignor.model.arrays import Floats, Int32s, Int64s
from assignor.model.group import Group

# Beyond so many for each member the rest is light enough to be dealt in rounds.
_SINGLY = 4
_LEAST_TURNOUT = 8


class Dealer:
    """Deals free partitions; nothing else moves.

    A member has *room* up to the level that all loads would reach if work could be divided at will. Falling
    by weight, a partition goes to the member with the most room that may have it (longest processing time
    first, Graham 1969). Partitions without weight go where there are fewest.
    """

    def __init__(self, group: Group, kept: Int32s, capacity: Floats, weight: Floats, cap: int) -> None:
        held = kept >= 0
        self._group = group
        self._weight = weight
        self._cap = cap
        self._member = kept.copy()
        self._count = np.bincount(kept[held], minlength=group.n_members)
        load = summed(weight[held], by=kept[held], n=group.n_members)
        free = float(weight[group.readable() & ~held].sum())
        self._room = poured(load, capacity, free) if group.n_members > 0 else load
        # A member above the level has no room; the less so, the further above it is.
        over = self._room == 0
        self._room[over] = -load[over] / capacity[over]

    def deal(self, free: Int64s) -> Int32s | None:
        """Member of each partition once `free` are dealt too; None when one has no member below the cap."""
        by_weight = free[np.argsort(-self._weight[free], kind="stable")]
        heavy = by_weight[: _SINGLY * self._group.n_members]
        light = by_weight[len(heavy) :]
        weightless = self._weight[light] == 0
        done = self._deal_singly(heavy) if self._group.has_equal_subscriptions() else self._deal_by_set(heavy)
        done = done and self._deal_in_rounds(light[~weightless]) and self._deal_by_count(light[weightless])
        return self._member if done else None

    def _give(self, pid: int, member: int) -> None:
        self._member[pid] = member
        self._count[member] += 1
        self._room[member] -= self._weight[pid]

    def _deal_singly(self, pids: Int64s) -> bool:
        """To the most room of all, everybody being eligible."""
        heap = [(-room, m) for m, room in enumerate(self._room.tolist()) if self._count[m] < self._cap]
        heapq.heapify(heap)
        for pid in pids.tolist():
            if not heap:
                return False
            member = heap[0][1]
            self._give(pid, member)
            if self._count[member] < self._cap:
                heapq.heapreplace(heap, (-float(self._room[member]), member))
            else:
                heapq.heappop(heap)
        return True

    def _deal_by_set(self, pids: Int64s) -> bool:
        """To the most room among the readers."""
        for pid in pids.tolist():
            readers = self._open(self._readers(pid))
            if len(readers) == 0:
                return False
            self._give(pid, int(readers[self._room[readers].argmax()]))
        return True

    def _deal_in_rounds(self, pids: Int64s) -> bool:
        """Falling weights, set by set: a round gives one partition to each reader with room, most room first."""
        return all(self._rounds(pids[chosen]) for chosen in self._by_set(pids))

    def _rounds(self, pids: Int64s) -> bool:
        at = 0
        while at < len(pids):
            readers = self._open(self._readers(int(pids[at])))
            if len(readers) == 0:
                return False
            ready = readers[self._room[readers] > 0]
            takers = ready if len(ready) * _LEAST_TURNOUT >= len(readers) else readers
            takers = takers[np.argsort(-self._room[takers], kind="stable")]
            block = pids[at : at + len(takers)]
            takers = takers[: len(block)]
            self._member[block] = takers
            self._count[takers] += 1
            self._room[takers] -= self._weight[block]
            at += len(block)
        return True

    def _deal_by_count(self, pids: Int64s) -> bool:
        for chosen in self._by_set(pids):
            block = pids[chosen]
            readers = self._readers(int(block[0]))
            more = _levelled(self._count[readers], len(block))
            if (self._count[readers] + more > self._cap)[more > 0].any():
                return False
            self._member[block] = np.repeat(readers, more)
            self._count[readers] += more
        return True

    def _by_set(self, pids: Int64s) -> list[Int64s]:
        """Positions in `pids` by subscriber set, sets ascending, order kept inside a set."""
        sets = self._group.subscriptions.set_of_topic[self._group.topics.topic_of[pids]]
        order = np.argsort(sets, kind="stable")
        bounds = np.nonzero(np.diff(sets[order], prepend=-1))[0]
        return np.split(order, bounds[1:]) if len(pids) > 0 else []

    def _readers(self, pid: int) -> Int32s:
        return self._group.subscriptions.of_topic(int(self._group.topics.topic_of[pid]))

    def _open(self, members: Int32s) -> Int32s:
        return members[self._count[members] < self._cap]


def _levelled(count: Int64s, amount: int) -> Int64s:
    """What each gets when `amount` raises the lowest counts to one level, give or take one."""
    more = np.floor(poured(count.astype(np.float64), np.ones(len(count)), float(amount))).astype(np.int64)
    short = amount - int(more.sum())
    more[np.argsort(count + more, kind="stable")[:short]] += 1
    return more
