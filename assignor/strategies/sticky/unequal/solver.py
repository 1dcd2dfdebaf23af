"""The most even assignment of a group whose members subscribe to different topics, with the fewest moves."""

import numpy as np

from assignor.model.arrays import Bools, Int32s, Int64s
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.sticky.unequal.blocks import divide
from assignor.strategies.sticky.unequal.moves import fewest_moves


def assign_unequal(group: Group) -> Assignment:
    """Every partition with a subscriber to a member: counts as even as can be, and then as few moves.

    Proved: among all assignments that give each partition to a subscriber of its topic, the counts, sorted
    from the largest down, are lexicographically least (`blocks.divide`); and among the assignments with
    those sorted counts none keeps more partitions with their owner (`moves.fewest_moves`).
    Not promised: which of several such assignments it is, beyond that it is always the same one; in
    particular nothing about lag, racks, or the spread of a topic over the members.

    Complexity: O(P + S * N) for S subscriber sets; then, for each length of chains and each cost, S + N steps on
        integers of N bits, and one chain for each hand-over.

    Source: Harvey, Ladner, Lovász, Tamir, Semi-matchings for bipartite graphs and load balancing (2006).
    """
    may_read = group.subscriptions.matrix()
    row = group.subscriptions.set_of_topic[group.topics.topic_of].astype(np.int64)
    row[~group.readable()] = -1
    supply = np.bincount(row[row >= 0], minlength=len(may_read)).astype(np.int64)
    owned = _counted(row, group.owner, may_read.shape)
    units = _dealt_out(owned, supply, may_read)
    blocks = divide(units, may_read)
    if (units < owned).any():
        units = fewest_moves(owned, supply, may_read, blocks)
    return Assignment.complete(group, _members(group, row, owned, units))


def _counted(row: Int64s, member: Int32s, shape: tuple[int, ...]) -> Int32s:
    """Rows x members: how many partitions of the row the member has."""
    held = member >= 0
    cell = row[held] * shape[1] + member[held]
    counts = np.bincount(cell, minlength=shape[0] * shape[1])
    table: Int32s = counts.astype(np.int32).reshape(shape)
    return table


def _dealt_out(owned: Int32s, supply: Int64s, may_read: Bools) -> Int32s:
    """`owned` made complete: what is left of each row goes to those of its readers who have the least."""
    units: Int32s = owned.copy()
    load = owned.sum(axis=0, dtype=np.int64)
    left = supply - owned.sum(axis=1)
    for h in np.nonzero(left)[0].tolist():
        readers = np.nonzero(may_read[h])[0]
        more = _filled(load[readers], int(left[h]))
        units[h, readers] += more
        load[readers] += more
    return units


def _filled(load: Int64s, amount: int) -> Int64s:
    """What each of some members gets when `amount` raises the least loads to one level."""
    order = np.argsort(load, kind="stable")
    ascending = load[order]
    below = np.arange(len(load)) * ascending - (np.cumsum(ascending) - ascending)
    n = int(np.searchsorted(below, amount, side="right"))
    level, extras = divmod(amount + int(ascending[:n].sum()), n)
    more = np.zeros(len(load), np.int64)
    more[order[:n]] = level - ascending[:n]
    more[order[:extras]] += 1
    return more


def _members(group: Group, row: Int64s, owned: Int32s, units: Int32s) -> Int32s:
    """From counts to partitions: owners keep their first ones in spread order, the rest is dealt in order."""
    n = group.n_members
    pids = group.topics.spread_order(np.nonzero(row >= 0)[0])
    pids = pids[np.argsort(row[pids], kind="stable")]
    member = np.full(group.n_partitions, -1, np.int32)
    held = pids[group.owner[pids] >= 0]
    cell = row[held] * n + group.owner[held]
    order = np.argsort(cell, kind="stable")
    held, cell = held[order], cell[order]
    first = np.cumsum(owned.ravel()) - owned.ravel()
    stays = held[np.arange(len(held)) - first[cell] < units.ravel()[cell]]
    member[stays] = group.owner[stays]
    free = pids[member[pids] < 0]
    member[free] = np.tile(np.arange(n, dtype=np.int32), len(units)).repeat(
        (units - np.minimum(units, owned)).ravel()
    )
    return member
