"""The fewest moves to a most even assignment, its blocks given: a min-cost flow."""

import numpy as np

from assignor.model.arrays import Bools, Int32s, Int64s
from assignor.strategies.sticky.unequal.blocks import Block
from assignor.strategies.sticky.unequal.flow import FlowNetwork, bits, bitsets


def fewest_moves(owned: Int32s, supply: Int64s, may_read: Bools, blocks: list[Block]) -> Int32s:
    """Subscriber sets x members: partitions of each set that a member gets; most even, with the fewest moves.

    Every partition starts with its owner; unowned ones are held by one more member "nobody", which should end with
    none. Each member of a block should end with `high` units: its partitions and, if it is to have `low` of them, one
    unit of *slack* of its block. Slack moves along augmenting paths as partitions do, so which members have the
    larger count is decided together with everything else.

    Proved: no most even assignment has fewer moves. The assignments with these targets are the most even ones,
    by `blocks.divide` (nothing forces a set into its block but the targets: those of the blocks from some
    `low` up add up to what only their members can read). The cost of an assignment is the number of owned
    partitions not kept. At the start and after every step no step costs less than its potentials say, so no
    assignment with the same number of units for each member is cheaper; at the end those are the targets.

    Args:
        owned: Subscriber sets x members: partitions owned by members that may read them.
        supply: Partitions of each set.
        may_read: Subscriber sets x members.
        blocks: Blocks of the group.

    Raises:
        ValueError: `blocks` are not those of the group.

    Source: Ahuja, Magnanti, Orlin, Network Flows (1993), 9.8, the primal-dual algorithm.
    """
    n_sets, n_members = owned.shape
    # Where all members of a block have the same count there is nothing to decide.
    undecided = [block for block in blocks if block.high > block.low]
    shape = (n_sets + len(undecided), n_members + 1)
    readers, own = np.zeros(shape, np.bool_), np.zeros(shape, np.int32)
    readers[:n_sets, :n_members] = may_read
    own[:n_sets, :n_members] = owned
    # The last column is nobody, who may read nothing, so what leaves nobody never comes back.
    flow = own.copy()
    flow[:n_sets, n_members] = supply - owned.sum(axis=1)
    load = owned.sum(axis=0)
    for slack, block in enumerate(undecided, n_sets):
        holders, others = _slack_holders(block, load, supply)
        # Slack is owned by nobody: that it moves costs nothing.
        flow[slack, holders] = 1
        readers[slack, others] = True
    excess: list[int] = (flow.sum(axis=0) - _targets(blocks, n_members)).tolist()
    network = FlowNetwork(flow, own, readers=bitsets(readers), first_slack=n_sets)
    everybody = (1 << (n_members + 1)) - 1
    # A path takes at most one owned partition from each member, so it costs no more than there are members.
    for _ in range(n_members + 2):
        reached = network.augment(excess, inside=everybody)
        if reached is None:
            fewest: Int32s = flow[:n_sets, :n_members]
            return fewest
        network.raise_potentials(reached)
    raise ValueError("no assignment keeps to these blocks, so they are not those of the group")


def _targets(blocks: list[Block], n_members: int) -> Int64s:
    """Units each member, and nobody as the last, should end with."""
    target = np.zeros(n_members + 1, np.int64)
    for block in blocks:
        target[list(bits(block.members))] = block.high
    return target


def _slack_holders(block: Block, load: Int64s, supply: Int64s) -> tuple[Int64s, Int64s]:
    """Members of the block that start with a unit of slack, and the others.

    Any start is right; this one lets members that already own `low` stay as they are, which saves paths.
    """
    members = np.array(list(bits(block.members)), np.int64)
    held = load[members]
    n_slack = block.high * len(members) - int(supply[list(bits(block.sets))].sum())
    ranked = members[np.lexsort((members, held, held > block.low, held != block.low))]
    return ranked[:n_slack], ranked[n_slack:]
