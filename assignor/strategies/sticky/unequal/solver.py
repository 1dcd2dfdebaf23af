"""The most even assignment of a group whose members subscribe to different topics, with the fewest moves."""

import numpy as np

from assignor.model.arrays import Bools, Int32s, Int64s
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.sticky.unequal.blocks import divide
from assignor.strategies.sticky.unequal.moves import fewest_moves


def assign_unequal(group: Group) -> Assignment:
    """Every partition with a subscriber to a member: counts as even as possible, and then as few moves.

    Proved: among all assignments that give each partition to a subscriber of its topic, the counts, sorted
    from the largest down, are lexicographically least (`blocks.divide`); and among the assignments with
    those sorted counts none keeps more partitions with their owner (`moves.fewest_moves`). What is fixed on a member
    is a subscriber set of its own that only this member reads, so all this holds among the assignments that leave it
    there.
    Not promised: which of several such assignments it is, beyond that it is always the same one; in
    particular nothing about lag, racks, or the spread of a topic over the members.

    Complexity: O(P + S * N) for S subscriber sets; then, for each length of paths and each cost, S + N steps on
        integers of N bits, and one path for each move.

    Source: Harvey, Ladner, Lovász, Tamir, Semi-matchings for bipartite graphs and load balancing (2006).
    """
    set_of, may_read = _subscriber_sets(group)
    supply = np.bincount(set_of[set_of >= 0], minlength=len(may_read)).astype(np.int64)
    owned = _counted(set_of, group.owner, may_read.shape)
    flow = _completed(owned, supply, may_read)
    blocks = divide(flow, may_read)
    # If nothing had to be taken from an owner, no assignment has fewer moves, and the min-cost flow is not needed.
    if (flow < owned).any():
        flow = fewest_moves(owned, supply, may_read, blocks)
    return Assignment.complete(group, _members(group, set_of, owned, flow))


def _subscriber_sets(group: Group) -> tuple[Int64s, Bools]:
    """The subscriber set of each partition, -1 where it can have no member; and the members of each set."""
    may_read = group.takers.matrix()
    set_of = group.takers.set_of_topic[group.topics.topic_of].astype(np.int64)
    set_of[~group.placeable()] = -1
    if not group.is_constrained():
        return set_of, may_read
    fixed = group.is_fixed()
    owners, own_set = np.unique(group.owner[fixed], return_inverse=True)
    set_of[fixed] = len(may_read) + own_set
    alone = np.zeros((len(owners), group.n_members), np.bool_)
    alone[np.arange(len(owners)), owners] = True
    return set_of, np.concatenate((may_read, alone))


def _counted(set_of: Int64s, member: Int32s, shape: tuple[int, ...]) -> Int32s:
    """Subscriber sets x members: partitions of the set that the member has."""
    held = member >= 0
    cell = set_of[held] * shape[1] + member[held]
    counts = np.bincount(cell, minlength=shape[0] * shape[1])
    table: Int32s = counts.astype(np.int32).reshape(shape)
    return table


def _completed(owned: Int32s, supply: Int64s, may_read: Bools) -> Int32s:
    """`owned` made complete: the unowned partitions of each set go to its readers by water-filling."""
    flow: Int32s = owned.copy()
    load = owned.sum(axis=0, dtype=np.int64)
    left = supply - owned.sum(axis=1)
    # Any complete assignment would do. One that is nearly even leaves few paths to be found.
    for s in np.nonzero(left)[0].tolist():
        readers = np.nonzero(may_read[s])[0]
        more = _whole_water_filling(load[readers], int(left[s]))
        flow[s, readers] += more
        load[readers] += more
    return flow


def _whole_water_filling(load: Int64s, amount: int) -> Int64s:
    """Water-filling in whole partitions: what each gets when `amount` raises the least loads to one level."""
    order = np.argsort(load, kind="stable")
    ascending = load[order]
    # Partitions needed to raise the members before each one to its load.
    below = np.arange(len(load)) * ascending - (np.cumsum(ascending) - ascending)
    n = int(np.searchsorted(below, amount, side="right"))
    level, extras = divmod(amount + int(ascending[:n].sum()), n)
    more = np.zeros(len(load), np.int64)
    more[order[:n]] = level - ascending[:n]
    more[order[:extras]] += 1
    return more


def _members(group: Group, set_of: Int64s, owned: Int32s, flow: Int32s) -> Int32s:
    """From counts to partitions: owners keep their first ones in spread order, the rest is given out in order."""
    n = group.n_members
    partitions = group.topics.spread_order(np.nonzero(set_of >= 0)[0])
    partitions = partitions[np.argsort(set_of[partitions], kind="stable")]
    member = np.full(group.n_partitions, -1, np.int32)
    held = partitions[group.owner[partitions] >= 0]
    # A stable sort by (set, owner) keeps the spread order inside each cell.
    cell = set_of[held] * n + group.owner[held]
    order = np.argsort(cell, kind="stable")
    held, cell = held[order], cell[order]
    first = np.cumsum(owned.ravel()) - owned.ravel()
    stays = held[np.arange(len(held)) - first[cell] < flow.ravel()[cell]]
    member[stays] = group.owner[stays]
    # `unowned` is sorted by set, and so is `gained` once it is flat: a set's partitions meet its members in order.
    unowned = partitions[member[partitions] < 0]
    gained = flow - np.minimum(flow, owned)
    member[unowned] = np.tile(np.arange(n, dtype=np.int32), len(flow)).repeat(gained.ravel())
    return member
