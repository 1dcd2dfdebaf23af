"""How far apart the totals of `lag-aware` may end: its docstring's bound, without looking at an assignment."""

import numpy as np

from assignor.model.arrays import Int64s
from assignor.model.group import Group


def spread_bounds(group: Group) -> Int64s:
    """T entries, in records: no two subscribers of a topic end further apart than this in the topic's lag.

    The width of the widest round. With scope "group" and equal subscriptions the largest entry bounds the
    spread of the group's totals.
    """
    order = np.lexsort((-group.lag, group.topics.topic_of))
    topic = group.topics.topic_of
    readers = group.subscriptions.subscriber_counts()[topic]
    lag = group.lag[order]
    rank = np.arange(len(order)) - group.topics.offsets[topic]
    read = readers > 0
    first = np.nonzero(read & (rank % np.maximum(readers, 1) == 0))[0]
    last = first + readers[first] - 1
    full = last < group.topics.offsets[topic[first] + 1]
    width = lag[first]
    width[full] -= lag[last[full]]
    widest = np.zeros(group.topics.n_topics, np.int64)
    np.maximum.at(widest, topic[first], width)
    return widest
