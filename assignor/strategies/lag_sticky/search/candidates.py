"""Per member, the partitions worth moving: a small table, so that the search does not depend on P."""

from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Floats, Int32s, Int64s
from assignor.strategies.lag_sticky.problem import Problem

# What is given up first is heavy; the sample of the rest is for the last bit of an excess.
_WIDTH = 64
_HEAVY = 40
_KEY_BITS = 63
_FLOAT_BITS = 31


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shelves:
    """What each member holds at the start, heaviest first."""

    pid: Int64s
    """Partitions by member, and of one member by falling weight."""
    first: Int64s
    """N + 1 entries: member m holds pid[first[m]:first[m + 1]]."""
    table: Int64s
    """N x width: the heaviest of each member and a sample of the rest, from heavy to light; -1 fills up."""

    def of(self, member: int) -> Int64s:
        """Everything that the member holds."""
        return self.pid[self.first[member] : self.first[member + 1]]


def shelves(problem: Problem, loose: Int64s, time_s: float) -> Shelves:
    """The shelves, by weight at a time; `loose` partitions are on none."""
    weight = problem.lag[:-1] + problem.rate[:-1] * time_s
    start = problem.start[:-1].copy()
    start[loose] = -1
    pid = by_member_and_weight(start, weight, problem.n_members)
    first = np.zeros(problem.n_members + 1, np.int64)
    np.cumsum(np.bincount(start[start >= 0], minlength=problem.n_members), out=first[1:])
    return Shelves(pid=pid, first=first, table=_table(pid, first))


def by_member_and_weight(start: Int32s, weight: Floats, n: int) -> Int64s:
    """Assigned partitions by (member, falling weight to some digits, pid).

    One sort of integers: member, weight and pid side by side in the bits of a key. A float32 that is not
    negative sorts as its bits do.

    Args:
        start: Member of each partition, -1 for none.
        weight: Of each partition, >= 0.
        n: Members.
    """
    pid_bits = max(len(start).bit_length(), 1)
    shift = max(_FLOAT_BITS + pid_bits + n.bit_length() - _KEY_BITS, 0)
    pid = np.nonzero(start >= 0)[0]
    lightness = (2**_FLOAT_BITS - 1 - weight[pid].astype(np.float32).view(np.int32).astype(np.int64)) >> shift
    keys = (start[pid].astype(np.int64) << (_FLOAT_BITS - shift)) | lightness
    keys = (keys << pid_bits) | pid
    keys.sort()
    by_member: Int64s = keys & (2**pid_bits - 1)
    return by_member


def _table(pid: Int64s, first: Int64s) -> Int64s:
    held = np.diff(first)[:, None]
    width = max(min(int(held.max(initial=0)), _WIDTH), 1)
    column = np.arange(width)[None, :]
    step = np.maximum(held - 1 - _HEAVY, 0) / max(width - 1 - _HEAVY, 1)
    spread = _HEAVY + np.floor((column - _HEAVY) * step).astype(np.int64)
    rank = np.where((held <= width) | (column < _HEAVY), column, spread)
    table = np.full((len(held), width), -1, np.int64)
    there = rank < held
    table[there] = pid[(first[:-1, None] + rank)[there]]
    return table
