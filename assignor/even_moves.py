"""The fewest moves to an assignment whose blocks are given."""

import numpy as np

from assignor.arrays import Bools, Int32s, Int64s
from assignor.even_blocks import Block
from assignor.even_flow import Exchange, bits, bitsets


def fewest_moves(owned: Int32s, supply: Int64s, may_read: Bools, blocks: list[Block]) -> Int32s:
    """Partitions each member gets of each row: even, as the blocks say, and as many as possible from before.

    Everything starts where it is owned; what is owned outside its block or not at all lies with a member
    "nobody", who should have none. A member of a block has `high` units: partitions and, when he ends with
    `low`, one *hole*, so that it is decided by the same chains who gets the larger counts.

    Proved: fewest moves. At the start and after every step no open way to hand on costs less than its prices
    say (each arc of the residual network has a reduced cost >= 0), and once nobody has too many or too few,
    that makes the flow one of minimum cost; its cost is the number of owned partitions given up. By the
    theorem on blocks every most even assignment is such a flow, so none has fewer moves.

    Args:
        owned: Rows x members: partitions owned by members who may read them.
        supply: Partitions of each row.
        may_read: Rows x members.
        blocks: Blocks of the group.

    Returns:
        Rows x members.

    Source: Ahuja, Magnanti, Orlin, Network Flows (1993), section 9.8, the primal-dual algorithm.
    """
    n_rows, n_members = owned.shape
    open_blocks = [block for block in blocks if block.high > block.low]
    inside = _inside(may_read, blocks)
    own = np.zeros((n_rows + len(open_blocks), n_members + 1), np.int32)
    own[:n_rows, :n_members] = np.where(inside, owned, 0)
    units = own.copy()
    units[:n_rows, n_members] = supply - own.sum(axis=1)[:n_rows]
    takers = np.zeros(own.shape, np.bool_)
    takers[:n_rows, :n_members] = inside
    for row, block in enumerate(open_blocks, n_rows):
        members = np.array(list(bits(block.members)))
        load = units[:n_rows, members].sum(axis=0)
        n_holes = block.high * len(members) - int(supply[list(bits(block.rows))].sum())
        first = members[np.lexsort((members, load, load > block.low, load != block.low))]
        units[row, first[:n_holes]] = 1
        takers[row, first[n_holes:]] = True
    target = np.zeros(n_members + 1, np.int64)
    for block in blocks:
        target[list(bits(block.members))] = block.high
    excess: list[int] = (units.sum(axis=0) - target).tolist()
    exchange = Exchange(units, own, takers=bitsets(takers), first_single=n_rows)
    everybody = (1 << (n_members + 1)) - 1
    while (reached := exchange.settle(excess, inside=everybody)) is not None:
        exchange.raise_prices(reached)
    fewest: Int32s = units[:n_rows, :n_members]
    return fewest


def _inside(may_read: Bools, blocks: list[Block]) -> Bools:
    """Rows x members: may the member read the row, and are both in one block."""
    inside = np.zeros_like(may_read)
    for block in blocks:
        cells = np.ix_(list(bits(block.rows)), list(bits(block.members)))
        inside[cells] = may_read[cells]
    return inside
