"""Placement of unowned partitions: longest processing time first (LPT), the light rest in rounds."""

import heapq

import numpy as np

from assignor.evaluation.drain.shares import water_filling
from assignor.evaluation.drain.time import sums_held
from assignor.model.arrays import Floats, Int32s, Int64s
from assignor.model.group import Group

# Beyond this many per member the rest is light enough to be placed in rounds, which numpy does at once.
_SINGLY_PER_MEMBER = 4
# A round needs at least an eighth of the readers; with fewer, rounds would be nearly as many as partitions.
_LEAST_TURNOUT = 8


class Placement:
    """Places unowned partitions; no other partition changes its member.

    The *residual capacity* of a member is what it lacks to the level that all loads would reach if work could
    be divided at will (`water_filling`). By falling weight, each partition goes to the reader with the largest
    residual capacity. Partitions without weight go to the members with the fewest partitions.

    Source: Graham, Bounds on multiprocessing timing anomalies (1969), for LPT. On n equal machines its makespan
    is at most 4/3 - 1/(3n) of the best; with unequal capacities, readers or a cap this bound does not hold.
    """

    def __init__(self, group: Group, kept: Int32s, capacity: Floats, weight: Floats, cap: int) -> None:
        held = kept >= 0
        self._group = group
        self._weight = weight
        self._cap = cap
        self._member = kept.copy()
        self._count = np.bincount(kept[held], minlength=group.n_members)
        load = sums_held(weight, kept, group.n_members)
        unowned_weight = float(weight[group.placeable() & ~held].sum())
        self._residual = _residual(group, load, capacity, unowned_weight)
        # Water-filling gives 0 to all members above the level; a negative value ranks them among each other.
        over = self._residual == 0
        self._residual[over] = -load[over] / capacity[over]

    def place(self, unowned: Int64s) -> Int32s | None:
        """Member of each partition with `unowned` placed too; None when one has no reader below the cap."""
        by_weight = unowned[np.argsort(-self._weight[unowned], kind="stable")]
        heavy = by_weight[: _SINGLY_PER_MEMBER * self._group.n_members]
        light = by_weight[len(heavy) :]
        weightless = self._weight[light] == 0
        # With equal subscriptions a heap finds the largest residual in O(log N); readers that differ need a scan.
        equal = self._group.has_equal_takers()
        done = self._place_with_heap(heavy) if equal else self._place_among_readers(heavy)
        done = done and self._place_in_rounds(light[~weightless]) and self._place_by_count(light[weightless])
        return self._member if done else None

    def _assign(self, partition: int, member: int) -> None:
        self._member[partition] = member
        self._count[member] += 1
        self._residual[member] -= self._weight[partition]

    def _place_with_heap(self, partitions: Int64s) -> bool:
        """LPT over all members, each of which may read everything."""
        residuals = enumerate(self._residual.tolist())
        heap = [(-residual, m) for m, residual in residuals if self._count[m] < self._cap]
        heapq.heapify(heap)
        for partition in partitions.tolist():
            if not heap:
                return False
            member = heap[0][1]
            self._assign(partition, member)
            if self._count[member] < self._cap:
                heapq.heapreplace(heap, (-float(self._residual[member]), member))
            else:
                heapq.heappop(heap)
        return True

    def _place_among_readers(self, partitions: Int64s) -> bool:
        """LPT over the readers of each partition."""
        for partition in partitions.tolist():
            readers = self._below_cap(self._readers(partition))
            if len(readers) == 0:
                return False
            self._assign(partition, int(readers[self._residual[readers].argmax()]))
        return True

    def _place_in_rounds(self, partitions: Int64s) -> bool:
        """One subscriber set after the other; in a round each reader with residual capacity gets one partition."""
        return all(self._place_set_in_rounds(partitions[chosen]) for chosen in self._by_set(partitions))

    def _place_set_in_rounds(self, partitions: Int64s) -> bool:
        at = 0
        while at < len(partitions):
            readers = self._below_cap(self._readers(int(partitions[at])))
            if len(readers) == 0:
                return False
            ready = readers[self._residual[readers] > 0]
            members = ready if len(ready) * _LEAST_TURNOUT >= len(readers) else readers
            members = members[np.argsort(-self._residual[members], kind="stable")]
            block = partitions[at : at + len(members)]
            members = members[: len(block)]
            self._member[block] = members
            self._count[members] += 1
            self._residual[members] -= self._weight[block]
            at += len(block)
        return True

    def _place_by_count(self, partitions: Int64s) -> bool:
        for chosen in self._by_set(partitions):
            block = partitions[chosen]
            readers = self._readers(int(block[0]))
            more = _counts_added(self._count[readers], len(block))
            if (self._count[readers] + more > self._cap)[more > 0].any():
                return False
            self._member[block] = np.repeat(readers, more)
            self._count[readers] += more
        return True

    def _by_set(self, partitions: Int64s) -> list[Int64s]:
        """Positions in `partitions` by subscriber set, sets ascending, order kept inside a set."""
        sets = self._group.takers.set_of_topic[self._group.topics.topic_of[partitions]]
        order = np.argsort(sets, kind="stable")
        bounds = np.nonzero(np.diff(sets[order], prepend=-1))[0]
        return np.split(order, bounds[1:]) if len(partitions) > 0 else []

    def _readers(self, partition: int) -> Int32s:
        return self._group.takers.of_topic(int(self._group.topics.topic_of[partition]))

    def _below_cap(self, members: Int32s) -> Int32s:
        return members[self._count[members] < self._cap]


def _residual(group: Group, load: Floats, capacity: Floats, unowned_weight: float) -> Floats:
    """What each member lacks to the level that `unowned_weight` raises them to; 0 above it, and of closed members."""
    residual = np.zeros(group.n_members)
    open_ = slice(None) if group.closed is None else ~group.closed
    if len(residual[open_]) > 0:
        residual[open_] = water_filling(load[open_], capacity[open_], unowned_weight)
    return residual


def _counts_added(count: Int64s, amount: int) -> Int64s:
    """Partitions each member gets when `amount` raises the lowest counts to one level, give or take one."""
    level = water_filling(count.astype(np.float64), np.ones(len(count)), float(amount))
    more = np.floor(level).astype(np.int64)
    short = amount - int(more.sum())
    more[np.argsort(count + more, kind="stable")[:short]] += 1
    return more
