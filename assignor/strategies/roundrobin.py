"""Strategy `roundrobin`: all partitions in a row, assigned to the members in turn, as in Kafka."""

import numpy as np

from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.constraints import in_place


def assign(group: Group) -> Assignment:
    """Each partition, by (topic, number), to the next member in turn that subscribes to its topic.

    With equal subscriptions counts differ by at most one; with unequal ones nothing is promised.
    The turn goes on from topic to topic. Inside a topic it starts at the first subscriber at or after the
    turn and then only ever goes round the subscribers, so a topic is one step. Whatever is fixed stays in place (see
    `constraints.in_place`).

    Complexity: O(P + T log N).

    Source: Kafka's RoundRobinAssignor.
    """
    member = np.full(group.n_partitions, -1, np.int32)
    offsets = group.topics.offsets.tolist()
    turn = 0
    for t in np.nonzero(group.topics.counts)[0].tolist():
        readers = group.subscriptions.of_topic(t)
        if len(readers) > 0:
            count = offsets[t + 1] - offsets[t]
            # A turn past the last subscriber gives their number, which wraps around to the first.
            start = int(np.searchsorted(readers, turn))
            taken = readers[(start + np.arange(count)) % len(readers)]
            member[offsets[t] : offsets[t + 1]] = taken
            turn = int(taken[-1]) + 1
    return Assignment.complete(group, in_place(group, member))
