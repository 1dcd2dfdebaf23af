"""How many partitions each member has in the most even assignment: blocks of members and their loads.

A *block* is a set of rows and a set of members: in every most even assignment the partitions of the rows stay
with the members, and each member has `low` or `high` of them, `high` <= `low` + 1. Conversely every complete
assignment that keeps to the blocks is most even, since its loads are the same multiset.
"""

from dataclasses import dataclass

import numpy as np

from assignor.arrays import Bools, Int32s
from assignor.even_flow import Exchange, Reached, bits, bitsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block; rows and members are bits."""

    rows: int
    members: int
    low: int
    high: int


def divide(units: Int32s, may_read: Bools) -> list[Block]:
    """The blocks of a group; `units`, any complete assignment, becomes a most even one.

    Take the loads apart at the mean, rounded up. While anybody is above it and a chain leads to somebody
    below, hand on. If members above it are left, they and all whom chains reach from them have at least that
    much, and their rows can go to nobody else; the others have at most that much: both parts are divided on
    their own. If nobody is left above, the same with the mean rounded down; then what chains reach is a
    finished block, and the others go on.

    Why that is most even: let a part be separated at k, its members B having at least k, all others at most k,
    and the rows A on them readable by nobody outside B. Any assignment puts all of A on B, so its sum of
    max(load - k, 0) is at least |A| - k |B|, which is what this one has. That holds at every k at once (what
    a block leaves open is only who has `low` and who `high`), so the loads are majorised by those of every
    other assignment: the sorted counts are lexicographically least, and so is the sum of their squares.

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
