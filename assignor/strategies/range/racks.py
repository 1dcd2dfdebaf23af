"""The rack pass of `range`: read from a replica in one's own rack where equal shares allow it.

Topics with the same subscribers and the same number of partitions go together, so that they still agree by
number. Shares are those of the plain ranges: q, and q + 1 for as many members as p mod n.
"""

from collections.abc import Iterator

import numpy as np

from assignor.model.arrays import Bools, Int32s, Int64s
from assignor.model.group import Group
from assignor.model.racks import NO_RACK, Racks


def prefer_own_rack(group: Group, racks: Racks, member: Int32s) -> None:
    """Overwrite the ranges in `member` where Kafka would match racks; nothing where racks make no difference.

    One topic alone: each subscriber in turn takes its first partitions with a replica in its rack. Several
    topics: number after number goes, in all of them, to the first subscriber below its share whose rack matches
    in all of them. What is left is ranged. A member without a rack matches everything.

    Complexity: O(P * R), R racks.

    Source: Kafka's RangeAssignor.
    """
    alone_needs = _needs_racks(group, racks)
    if not alone_needs.any():
        return
    for topics in _that_go_together(group):
        if len(topics) == 1 and not alone_needs[topics[0]]:
            continue
        readers = group.subscriptions.of_topic(topics[0])
        numbers = np.arange(group.topics.counts[topics[0]])
        partitions = group.topics.offsets[topics][:, None] + numbers
        # A rack has to match in all of the topics, since partitions of one number stay together.
        match: Bools = np.logical_and.reduce(racks.of_partition[partitions], axis=0)
        hand_out = _reader_after_reader if len(topics) == 1 else _number_after_number
        reader_of = hand_out(match, racks.of_member[readers])
        member[partitions] = readers[_range_the_rest(reader_of, len(readers))]


def _needs_racks(group: Group, racks: Racks) -> Bools:
    """T entries: whether racks of replicas matter for the topic on its own."""
    needs = np.zeros(group.topics.n_topics, np.bool_)
    for t in np.nonzero(group.topics.counts)[0].tolist():
        rack = racks.of_member[group.subscriptions.of_topic(t)]
        replicas = racks.of_partition[group.topics.offsets[t] : group.topics.offsets[t + 1]]
        somewhere: Bools = np.logical_or.reduce(replicas, axis=0)
        needs[t] = somewhere[rack[rack != NO_RACK]].any() and not (replicas == somewhere).all()
    return needs


def _that_go_together(group: Group) -> Iterator[Int64s]:
    """Topics with the same subscribers, at least one, and the same number of partitions."""
    key = np.stack((group.subscriptions.set_of_topic, group.topics.counts))
    keys, of_topic = np.unique(key, axis=1, return_inverse=True)
    for k, subscriber_set in enumerate(keys[0].tolist()):
        if len(group.subscriptions.set_members(subscriber_set)) > 0:
            yield np.nonzero(of_topic == k)[0]


def _reader_after_reader(match: Bools, rack: Int32s) -> Int32s:
    """Position of the subscriber that takes each number, -1 where no rack matches or all shares are full."""
    base, extras = divmod(len(match), len(rack))
    reader_of = np.full(len(match), -1, np.int32)
    may_take = {
        own: np.arange(len(match)) if own == NO_RACK else np.nonzero(match[:, own])[0]
        for own in np.unique(rack).tolist()
    }
    for position, own in enumerate(rack.tolist()):
        mine = _first_free(may_take[own], reader_of, base + (extras > 0))
        if len(mine) > 0:
            reader_of[mine] = position
            # A share of base + 1 uses up one of the extras, as a plain range of that size does.
            extras -= len(mine) > base
            # All up to the last one taken are gone for the next members in this rack.
            may_take[own] = may_take[own][np.searchsorted(may_take[own], mine[-1]) + 1 :]
    return reader_of


def _first_free(numbers: Int64s, reader_of: Int32s, wanted: int) -> Int64s:
    """The first `wanted` of the ascending numbers that have no reader yet, or as many as there are."""
    # Looking at a few at a time: all subscribers together would otherwise look at everything N times.
    width = 4 * wanted
    free = numbers[:width][reader_of[numbers[:width]] < 0]
    while len(free) < wanted and width < len(numbers):
        width *= 2
        free = numbers[:width][reader_of[numbers[:width]] < 0]
    return free[:wanted]


def _number_after_number(match: Bools, rack: Int32s) -> Int32s:
    """Like `_reader_after_reader`, but the numbers take turns instead of the subscribers."""
    base, extras = divmod(len(match), len(rack))
    held = [0] * len(rack)
    reader_of = np.full(len(match), -1, np.int32)
    # Shares only fill up, so of each rack the first subscriber below its share is the last of a stack.
    waiting = {own: np.nonzero(rack == own)[0][::-1].tolist() for own in np.unique(rack).tolist()}
    for number, racks in enumerate(match.tolist()):
        first = []
        for own, stack in waiting.items():
            while stack and held[stack[-1]] >= base + (extras > 0):
                stack.pop()
            if stack and (own == NO_RACK or racks[own]):
                first.append(stack[-1])
        if first:
            position = min(first)
            reader_of[number] = position
            held[position] += 1
            extras -= held[position] > base
    return reader_of


def _range_the_rest(reader_of: Int32s, n_readers: int) -> Int32s:
    """Numbers without a reader as ranges over the shares that are not full."""
    base, extras = divmod(len(reader_of), n_readers)
    held = np.bincount(reader_of[reader_of >= 0], minlength=n_readers)
    # Those that got base + 1 by their rack have had an extra; the others that are left go to the first in order.
    share = np.maximum(held, base)
    without_extra = np.nonzero(held <= base)[0]
    share[without_extra[: extras - int((held > base).sum())]] += 1
    filled: Int32s = reader_of.copy()
    filled[reader_of < 0] = np.arange(n_readers, dtype=np.int32).repeat(share - held)
    return filled
