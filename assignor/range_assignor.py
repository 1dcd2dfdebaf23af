"""Strategy `range`: per topic, consecutive partitions to the subscribers in member order, as in Kafka."""

import numpy as np

from assignor.arrays import Int32s
from assignor.assignment import Assignment
from assignor.group import Group
from assignor.range_racks import prefer_own_rack

NAME = "range"


def assign(group: Group) -> Assignment:
    """Per topic with p partitions and n subscribers, q, s = divmod(p, n): the first s get q + 1, the rest q.

    Topics with equal partition counts and subscribers agree by number. Where members and replicas have racks,
    a pass before prefers the member's own rack; counts stay q and q + 1 (see `range_racks`).

    Complexity: O(P) without racks.

    Source: Kafka's RangeAssignor; racks since KIP-881.
    """
    member = _ranges(group)
    if group.racks is not None:
        prefer_own_rack(group, group.racks, member)
    return Assignment.complete(group, member)


def _ranges(group: Group) -> Int32s:
    """The ranges of every topic at once."""
    sets = group.subscriptions
    read = np.nonzero(group.readable())[0]
    topic, number = group.topics.topic_of[read], group.topics.number_of[read].astype(np.int64)
    base, extras = np.divmod(group.topics.counts, np.maximum(sets.subscriber_counts(), 1))
    after_long_shares = number - (extras * (base + 1))[topic]
    position = np.where(
        after_long_shares < 0,
        number // (base + 1)[topic],
        extras[topic] + after_long_shares // np.maximum(base, 1)[topic],
    )
    member = np.full(group.n_partitions, -1, np.int32)
    member[read] = sets.members[sets.offsets[sets.set_of_topic[topic]] + position]
    return member
