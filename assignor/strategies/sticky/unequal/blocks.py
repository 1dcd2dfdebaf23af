"""How many partitions each member has in the most even assignment: blocks of members and their counts.

A *block* is a number of subscriber sets and members: in every most even assignment the partitions of these sets stay
with these members, and each member has `low` or `high` of them, `high` <= `low` + 1. Conversely every complete
assignment that keeps to the blocks is most even, because its counts are the same multiset.
"""

from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Bools, Int32s
from assignor.strategies.sticky.unequal.flow import FlowNetwork, Reached, bits, bitsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block; subscriber sets and members are bits."""

    sets: int
    members: int
    low: int
    high: int


def divide(flow: Int32s, may_read: Bools) -> list[Block]:
    """The blocks of a group; `flow`, any complete assignment, becomes a most even one.

    Members are parted at their mean count k, rounded up. Partitions move along augmenting paths from members above k
    to members below it as long as there are such paths. If members above k are left, then they and those that paths
    from them reach have k or more, no other member can read their partitions, and the others have k or less: the
    two sides are divided on their own. Otherwise the same is done at the mean rounded down; what paths then reach
    is a finished block, and the others go on.

    Proved: counts are most even. Where members are parted at k, let B be those with k or more and A the
    partitions on them, which no member outside B can read. In any assignment the sum of max(count - k, 0) over
    all members is at least |A| - k |B|, and here it is just that. This holds at each k, because inside a block
    counts differ by at most one. So every other assignment's counts majorise these: sorted from the largest
    down these are lexicographically least, and so is the sum of their squares. An assignment as even attains
    each of the bounds, which means A on B, nothing else on B, k or more in B and k or less outside: it keeps
    to the blocks. And one that keeps to the blocks has these counts.

    Args:
        flow: Subscriber sets x members: partitions held. Changed in place.
        may_read: Subscriber sets x members.

    Source: Harvey, Ladner, Lovász, Tamir, Semi-matchings for bipartite graphs and load balancing (2006).
    """
    # Here nothing is owned, so every step costs 0 and any augmenting path will do.
    network = FlowNetwork(flow, np.zeros_like(flow), readers=bitsets(may_read), first_slack=len(flow))
    load: list[int] = flow.sum(axis=0).tolist()
    sets = sum(1 << s for s in np.nonzero(flow.any(axis=1))[0].tolist())
    members = sum(1 << m for m in np.nonzero(may_read[flow.any(axis=1)].any(axis=0))[0].tolist())
    blocks: list[Block] = []
    parts = [(sets, members)] if members else []
    while parts:
        sets, members = parts.pop()
        low, remainder = divmod(sum(load[m] for m in bits(members)), members.bit_count())
        high = low + (remainder > 0)
        above = _level_at(network, load, members, high)
        if above is not None:
            # Where one member is above the mean another is below it, and paths do not reach it: both parts are smaller.
            parts += ((above.sets, above.members), _rest(sets, members, above))
            continue
        # No member is above `high` any more. Those that paths from above `low` reach have `low` or `high`: one block.
        block = _level_at(network, load, members, low) if high > low else None
        if block is None:
            block = Reached(sets=sets, members=members)
        blocks.append(Block(sets=block.sets, members=block.members, low=low, high=high))
        if block.members != members:
            parts.append(_rest(sets, members, block))
    return blocks


def _level_at(network: FlowNetwork, load: list[int], members: int, target: int) -> Reached | None:
    """Augment from members above the target to members below it; what those still above reach, if any are."""
    # Loads serve as excesses meanwhile: `augment` keeps them up to date, and no copy is made for each level.
    for m in bits(members):
        load[m] -= target
    reached = network.augment(load, inside=members)
    for m in bits(members):
        load[m] += target
    return reached


def _rest(sets: int, members: int, reached: Reached) -> tuple[int, int]:
    return sets & ~reached.sets, members & ~reached.members
