"""Strategy `range`: per topic, consecutive partitions to the subscribers in member order, as in Kafka."""

import numpy as np

from assignor.model.arrays import Int32s
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.constraints import in_place
from assignor.strategies.range.racks import prefer_own_rack


def assign(group: Group) -> Assignment:
    """Per topic with p partitions and n subscribers, q, s = divmod(p, n): the first s get q + 1, the rest q.

    Topics with equal partition counts and subscribers agree by number. Where members and replicas have racks,
    a pass before prefers the member's own rack; counts stay q and q + 1 (see `racks`). Whatever is fixed stays in
    place (see `constraints.in_place`), and counts are then what they are.

    Complexity: O(P) without racks.

    Source: Kafka's RangeAssignor; racks since KIP-881.
    """
    member = _ranges(group)
    if group.racks is not None:
        prefer_own_rack(group, group.racks, member)
    return Assignment.complete(group, in_place(group, member))


def _ranges(group: Group) -> Int32s:
    """The ranges of every topic at once: each subscriber that gets something, as often as it gets something."""
    sets, counts = group.subscriptions, group.topics.counts
    readers = sets.subscriber_counts()
    # Topics without readers have no range; the 1 only keeps the division defined.
    base, extras = np.divmod(counts, np.maximum(readers, 1))
    # With more subscribers than partitions the last ones get nothing: one row for each range that is not empty.
    n_ranges = np.minimum(readers, counts)
    topic = np.repeat(np.arange(len(counts)), n_ranges)
    rank = np.arange(len(topic)) - np.repeat(np.cumsum(n_ranges) - n_ranges, n_ranges)
    share = base[topic] + (rank < extras[topic])
    taken = np.repeat(sets.members[sets.offsets[sets.set_of_topic[topic]] + rank], share)
    if len(taken) == group.n_partitions:
        return taken
    member = np.full(group.n_partitions, -1, np.int32)
    member[group.readable()] = taken
    return member
