"""Per member, the partitions worth moving: a small table, so that the work of the search does not depend on P."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from assignor.model.arrays import Floats, Int32s, Int64s
from assignor.strategies.lag_sticky.problem import Problem

# Evictions begin with the heaviest partitions; the sample of the rest closes what is left of an excess.
_WIDTH = 64
_HEAVY = 40
# A step of local search evaluates this many candidates of a member, so its time does not grow with the group.
_FEW_WIDTH = 24
_FEW_HEAVY = 12
_KEY_BITS = 63
_FLOAT_BITS = 31


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """What each member holds at the start and may lose, heaviest first."""

    partitions: Int64s
    """Partitions by member, and of one member by falling weight."""
    first: Int64s
    """N + 1 entries: member m holds partitions[first[m]:first[m + 1]]."""
    table: Int64s
    """N x width: the heaviest of each member and a sample of the rest, from heavy to light; padded with -1."""
    few: Int64s
    """`sampled` of the table: those that local search begins with."""

    def of(self, member: int) -> Int64s:
        """Everything that the member holds, not only what is in the table."""
        return self.partitions[self.first[member] : self.first[member + 1]]


def candidates_at(problem: Problem, unowned: Int64s, time_s: float) -> Candidates:
    """The candidates ranked by weight at a time, without the `unowned` partitions and those that are fixed."""
    weight = problem.lag[:-1] + problem.rate[:-1] * time_s
    start = problem.without_fixed(problem.start[:-1]).copy()
    start[unowned] = -1
    partitions = by_member_and_weight(start, weight, problem.n_members)
    first = np.zeros(problem.n_members + 1, np.int64)
    np.cumsum(np.bincount(start[start >= 0], minlength=problem.n_members), out=first[1:])
    table = _table(partitions, first)
    return Candidates(partitions=partitions, first=first, table=table, few=sampled(table))


def by_member_and_weight(start: Int32s, weight: Floats, n: int) -> Int64s:
    """Assigned partitions by (member, falling weight to some digits, partition).

    One sort of integers replaces a lexsort of three arrays: member, weight and partition stand side by side in the
    bits of one key. That works because float32 values that are not negative sort as their bits do.

    Args:
        start: Member of each partition, -1 for none.
        weight: Weight of each partition, >= 0.
        n: Number of members.
    """
    index_bits = max(len(start).bit_length(), 1)
    # Where members and partitions leave the key no room, the last digits of the weight are dropped.
    shift = max(_FLOAT_BITS + index_bits + n.bit_length() - _KEY_BITS, 0)
    assigned = np.nonzero(start >= 0)[0]
    weight_bits = weight[assigned].astype(np.float32).view(np.int32).astype(np.int64)
    lightness = (2**_FLOAT_BITS - 1 - weight_bits) >> shift
    keys = (start[assigned].astype(np.int64) << (_FLOAT_BITS - shift)) | lightness
    keys = (keys << index_bits) | assigned
    keys.sort()
    by_member: Int64s = keys & (2**index_bits - 1)
    return by_member


def _table(partitions: Int64s, first: Int64s) -> Int64s:
    held = np.diff(first)[:, None]
    width = max(min(int(held.max(initial=0)), _WIDTH), 1)
    column = np.arange(width)[None, :]
    step = np.maximum(held - 1 - _HEAVY, 0) / max(width - 1 - _HEAVY, 1)
    # Ranks spread evenly over the lighter partitions, so that the sample has all weights.
    spread = _HEAVY + np.floor((column - _HEAVY) * step).astype(np.int64)
    rank = np.where((held <= width) | (column < _HEAVY), column, spread)
    table = np.full((len(held), width), -1, np.int64)
    there = rank < held
    table[there] = partitions[(first[:-1, None] + rank)[there]]
    return table


@cache
def sampled_ranks(held: int) -> tuple[int, ...]:
    """The ranks, from heavy to light, of those that `sampled` takes of one member that holds more than it takes."""
    ranks: list[int] = sampled(np.arange(held)[None, :])[0].tolist()
    return tuple(ranks)


def sampled(table: Int64s) -> Int64s:
    """The heaviest of each row and a sample of the rest, for local search; padded with -1."""
    # Heavy ones carry load, and small ones of every size fill what is left: a sample evenly spread over the ranks
    # has some of each size.
    width = table.shape[1]
    if width <= _FEW_WIDTH:
        padded = np.full((len(table), _FEW_WIDTH), -1, np.int64)
        padded[:, :width] = table
        return padded
    held = (table >= 0).sum(axis=1)[:, None]
    column = np.arange(_FEW_WIDTH)[None, :]
    step = np.maximum(held - 1 - _FEW_HEAVY, 0) / (_FEW_WIDTH - 1 - _FEW_HEAVY)
    spread = _FEW_HEAVY + np.floor((column - _FEW_HEAVY) * step).astype(np.int64)
    rank = np.where((held <= _FEW_WIDTH) | (column < _FEW_HEAVY), column, spread)
    return np.take_along_axis(table, np.minimum(rank, width - 1), 1)
