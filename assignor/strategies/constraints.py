"""Fixed partitions and closed members, for strategies that are a formula."""

import numpy as np

from assignor.model.arrays import Bools, Int32s
from assignor.model.group import Group


def in_place(group: Group, member: Int32s) -> Int32s:
    """The members of a formula's assignment, with everything that is fixed left in place.

    A partition for a closed member stays with its owner; without one it goes to the other subscribers of its topic in
    turn, or to no member if all of them are closed.
    """
    if not group.is_constrained():
        return member
    placed: Int32s = np.where(group.is_fixed(), group.owner, member).astype(np.int32)
    refused = is_refused(group, placed)
    placed[refused] = group.owner[refused]
    without = np.nonzero(refused & (placed < 0))[0]
    for t in np.unique(group.topics.topic_of[without]).tolist():
        partitions = without[group.topics.topic_of[without] == t]
        takers = group.takers.of_topic(t)
        if len(takers) > 0:
            first = int(np.searchsorted(takers, member[partitions[0]]))
            placed[partitions] = takers[(first + np.arange(len(partitions))) % len(takers)]
    return placed


def is_refused(group: Group, member: Int32s) -> Bools:
    """P entries: whether the member of the partition is closed and does not own it."""
    if group.closed is None or group.n_members == 0:
        return np.zeros(group.n_partitions, np.bool_)
    refused: Bools = (member >= 0) & group.closed[member] & (member != group.owner)
    return refused
