"""Two judges of even counts and few moves that know nothing of how an assignment was found.

`best` goes through every assignment of a small group. `has_better_exchange` asks any group's assignment whether
some exchange of partitions would improve it, which for a flow is the same as being optimal (Klein 1967).
"""

from math import comb

import numpy as np

from assignor.model.assignment import Assignment
from assignor.model.group import Group
from tests.support.assignors.literal_rules import possible_members, subscribers


def n_count_vectors(group: Group) -> int:
    """What `best` has to go through, in orders of magnitude."""
    members = max(group.n_members, 1)
    return comb(group.n_partitions + members - 1, members - 1)


def best(group: Group) -> tuple[list[int], int]:
    """Least counts, sorted from the largest down, and the most partitions that can stay with such counts.

    Every assignment that leaves in place what is fixed is covered: partition by partition, all readers are tried, and of the assignments that
    share one vector of counts only the number kept matters.
    """
    kept = {(0,) * group.n_members: 0}
    for partition in range(group.n_partitions):
        readers = possible_members(group, partition)
        tried: dict[tuple[int, ...], int] = {}
        for counts, stay in kept.items() if readers else ():
            for m in readers:
                with_it = (*counts[:m], counts[m] + 1, *counts[m + 1 :])
                tried[with_it] = max(tried.get(with_it, 0), stay + int(group.owner[partition] == m))
        kept = tried if readers else kept
    least = min(sorted(counts, reverse=True) for counts in kept)
    return least, max(stay for counts, stay in kept.items() if sorted(counts, reverse=True) == least)


def has_better_exchange(group: Group, assignment: Assignment) -> bool:
    """Does a cycle of hand-overs lower (sum of squared counts, moves), compared in that order.

    Bellman and Ford on the residual network topics - members - sink, where one unit of the squares outweighs
    all the moves there can be.
    """
    held, own, may_read = _tables(group, assignment)
    weight = 2 * group.n_partitions + 3
    load = held.sum(axis=0)
    never = np.int64(1) << 40
    to_member = np.where(may_read, np.where(held < own, -1, 0), never)
    to_topic = np.where(held > 0, np.where(held <= own, 1, 0), never)
    to_sink = weight * (2 * load + 1)
    from_sink = np.where(load > 0, -weight * (2 * load - 1), never)
    topics, members, sink = np.zeros(len(held), np.int64), np.zeros(len(load), np.int64), np.int64(0)
    for _ in range(len(topics) + len(members) + 2):
        before = (topics, members, sink)
        members = np.minimum(members, (topics[:, None] + to_member).min(axis=0, initial=never))
        members = np.minimum(members, sink + from_sink)
        topics = np.minimum(topics, (members + to_topic).min(axis=1, initial=never))
        sink = min(sink, (members + to_sink).min(initial=never))
        if all(np.array_equal(now, then) for now, then in zip((topics, members, sink), before, strict=True)):
            return False
    return True


def _tables(group: Group, assignment: Assignment) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Topics x members: partitions held in the assignment, owned before, and whether the member may read."""
    shape = (group.topics.n_topics, group.n_members)
    held, own, may_read = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    for t in range(group.topics.n_topics):
        may_read[t, subscribers(group, t)] = True
    for table, member in ((held, assignment.member), (own, group.owner)):
        there = member >= 0
        np.add.at(table, (group.topics.topic_of[there], member[there]), 1)
    return held, own, may_read
