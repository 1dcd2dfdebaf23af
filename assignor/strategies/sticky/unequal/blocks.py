"""How many partitions each member has in the most even assignment: blocks of members and their loads.

A *block* is a set of rows and a set of members: in every most even assignment the partitions of the rows stay
with the members, and each member has `low` or `high` of them, `high` <= `low` + 1. Conversely every complete
assignment that keeps to the blocks is most even, since its loads are the same multiset.
"""

from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Bools, Int32s
from assignor.strategies.sticky.unequal.flow import Exchange, Reached, bits, bitsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block; rows and members are bits."""

    rows: int
    members: int
    low: int
    high: int


def divide(units: Int32s, may_read: Bools) -> list[Block]:
    """The blocks of a group; `units`, any complete assignment, becomes a most even one.

    Members are parted at their mean count k, rounded up. Partitions are handed on from members above k to members
    below it as long as chains lead there. If members above k are left, then they and those that chains from
    them reach have k or more, their rows can be read by nobody else, and the others have k or less: the two
    sides are divided on their own. Otherwise the same is done at the mean rounded down; what chains then reach
    is a finished block, and the others go on.

    Proved: counts are most even. Where members are parted at k, let B be those with k or more and A the
    partitions on them, which nobody outside B can read. In any assignment the sum of max(count - k, 0) over
    all members is at least |A| - k |B|, and here it is just that. This holds at each k, because inside a block
    counts differ by at most one. So every other assignment's counts majorise these: sorted from the largest
    down these are lexicographically least, and so is the sum of their squares. An assignment as even attains
    each of the bounds, which means A on B, nothing else on B, k or more in B and k or less outside: it keeps
    to the blocks. And one that keeps to the blocks has these counts.

    Args:
        units: Rows x members, partitions held. Changed in place.
        may_read: Rows x members.

    Source: Harvey, Ladner, Lovász, Tamir, Semi-matchings for bipartite graphs and load balancing (2006).
    """
    exchange = Exchange(units, np.zeros_like(units), takers=bitsets(may_read), first_single=len(units))
    load: list[int] = units.sum(axis=0).tolist()
    rows = sum(1 << h for h in np.nonzero(units.any(axis=1))[0].tolist())
    members = sum(1 << m for m in np.nonzero(may_read[units.any(axis=1)].any(axis=0))[0].tolist())
    blocks: list[Block] = []
    parts = [(rows, members)] if members else []
    while parts:
        rows, members = parts.pop()
        low, remainder = divmod(sum(load[m] for m in bits(members)), members.bit_count())
        high = low + (remainder > 0)
        above = _level_at(exchange, load, members, high)
        if above is not None:
            parts += ((above.rows, above.members), _rest(rows, members, above))
            continue
        block = _level_at(exchange, load, members, low) if high > low else None
        if block is None:
            block = Reached(rows=rows, members=members)
        blocks.append(Block(rows=block.rows, members=block.members, low=low, high=high))
        if block.members != members:
            parts.append(_rest(rows, members, block))
    return blocks


def _level_at(exchange: Exchange, load: list[int], members: int, target: int) -> Reached | None:
    """Hand on from members above the target to members below it; what those still above reach, if any are."""
    for m in bits(members):
        load[m] -= target
    reached = exchange.settle(load, inside=members)
    for m in bits(members):
        load[m] += target
    return reached


def _rest(rows: int, members: int, reached: Reached) -> tuple[int, int]:
    return rows & ~reached.rows, members & ~reached.members
