"""The fewest moves to a most even assignment, its blocks given."""

import numpy as np

from assignor.model.arrays import Bools, Int32s, Int64s
from assignor.strategies.sticky.unequal.blocks import Block
from assignor.strategies.sticky.unequal.flow import Exchange, bits, bitsets


def fewest_moves(owned: Int32s, supply: Int64s, may_read: Bools, blocks: list[Block]) -> Int32s:
    """Rows x members: how many partitions of each row a member gets; even, and as many as can be stay.

    Everything starts with its owner; what nobody owns lies with one more member "nobody", that should end with
    none. Each member of a block should end with `high` units: partitions and, if it is to have `low` of them,
    one *hole* of its block. Holes go along chains as partitions do, so who has the larger count is settled
    together with everything else.

    Proved: no most even assignment has fewer moves. The assignments with these targets are the most even ones,
    by `blocks.divide` (nothing forces a row into its block but the targets: those of the blocks from some
    `low` up add up to what only their members can read). The cost of an assignment is the number of owned
    partitions not kept. At the start and after every step no step costs less than its prices say, so no
    assignment with the same number of units for each member is cheaper; at the end those are the targets.

    Args:
        owned: Rows x members: partitions owned by members that may read them.
        supply: Partitions of each row.
        may_read: Rows x members.
        blocks: Blocks of the group.

    Raises:
        ValueError: `blocks` are not those of the group.

    Source: Ahuja, Magnanti, Orlin, Network Flows (1993), 9.8, the primal-dual algorithm.
    """
    n_rows, n_members = owned.shape
    undecided = [block for block in blocks if block.high > block.low]
    shape = (n_rows + len(undecided), n_members + 1)
    takers, own = np.zeros(shape, np.bool_), np.zeros(shape, np.int32)
    takers[:n_rows, :n_members] = may_read
    own[:n_rows, :n_members] = owned
    units = own.copy()
    units[:n_rows, n_members] = supply - owned.sum(axis=1)
    load = owned.sum(axis=0)
    for row, block in enumerate(undecided, n_rows):
        holders, others = _hole_holders(block, load, supply)
        units[row, holders] = 1
        takers[row, others] = True
    excess: list[int] = (units.sum(axis=0) - _targets(blocks, n_members)).tolist()
    exchange = Exchange(units, own, takers=bitsets(takers), first_single=n_rows)
    everybody = (1 << (n_members + 1)) - 1
    # A chain takes at most one owned partition from each member, so it costs no more than there are members.
    for _ in range(n_members + 2):
        reached = exchange.settle(excess, inside=everybody)
        if reached is None:
            fewest: Int32s = units[:n_rows, :n_members]
            return fewest
        exchange.raise_prices(reached)
    raise ValueError("no assignment keeps to these blocks, so they are not those of the group")


def _targets(blocks: list[Block], n_members: int) -> Int64s:
    """Units each member, and nobody as the last, should end with."""
    target = np.zeros(n_members + 1, np.int64)
    for block in blocks:
        target[list(bits(block.members))] = block.high
    return target


def _hole_holders(block: Block, load: Int64s, supply: Int64s) -> tuple[Int64s, Int64s]:
    """Members of the block that start with a hole, and the others.

    Any start is right; this one has members that already own `low` stay as they are.
    """
    members = np.array(list(bits(block.members)), np.int64)
    held = load[members]
    n_holes = block.high * len(members) - int(supply[list(bits(block.rows))].sum())
    ranked = members[np.lexsort((members, held, held > block.low, held != block.low))]
    return ranked[:n_holes], ranked[n_holes:]
