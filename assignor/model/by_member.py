"""An assignment in names, as plug-ins send it to members and as the answer to a JSON case has it."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from assignor.model.arrays import Int32s, Int64s, stable_order
from assignor.model.group import Group
from assignor.model.topics import Topics

Placed = dict[str, tuple[int, ...]]
"""Partition numbers by topic name."""


def by_member(group: Group, member: Int32s) -> dict[str, Placed]:
    """Return member id -> topic -> numbers: members in tie-break order, topics and numbers ascending.

    A member without partitions has an empty entry; a partition without a member is in none. The entries are
    as `Member.owned` takes them.

    Args:
        group: The group that was assigned.
        member: Member index of each of P partitions, -1 for none.

    Complexity: O(P + N).
    """
    partitions = by_holder(member, group.n_members)
    holder, topic = member[partitions], group.topics.topic_of[partitions]
    starts = run_starts(holder, topic)
    numbers = _cut(group.topics.number_of[partitions], starts)
    ends = np.searchsorted(holder[starts], np.arange(1, group.n_members + 1)).tolist()
    return dict(zip(group.member_ids, _dicts(group.topics, topic[starts], numbers, ends), strict=True))


def by_holder(member: Int32s, n_members: int) -> Int64s:
    """The partitions that have a member, members ascending, and those of one member ascending."""
    if member.min(initial=0) >= 0:
        return stable_order(member, below=n_members)
    placed = np.nonzero(member >= 0)[0]
    return placed[stable_order(member[placed], below=n_members)]


def by_topic(topics: Topics, partitions: Int64s) -> Placed:
    """Topic -> numbers, for ascending partition indices."""
    starts = run_starts(topics.topic_of[partitions])
    numbers = _cut(topics.number_of[partitions], starts)
    return next(_dicts(topics, topics.topic_of[partitions[starts]], numbers, [len(starts)]))


def _dicts(
    topics: Topics, topic: Int32s, numbers: list[tuple[int, ...]], ends: list[int]
) -> Iterator[Placed]:
    """One dictionary for the entries up to each end.

    Where topics are spread evenly, one member has the same topics as the next. Then a copy of its dictionary has room
    for every entry already; to build one anew is to enlarge it again and again, and takes half as long again.
    """
    named: Int32s = np.zeros(0, np.int32)
    names: list[str] = []
    entry: Placed = {}
    rest = iter(numbers)
    for begin, end in pairwise([0, *ends]):
        own = topic[begin:end]
        if not np.array_equal(own, named):
            named, names, entry = own, [topics.names[t] for t in own.tolist()], {}
        entry = entry.copy()
        # The names end first, and what follows is left to the next one.
        entry.update(zip(names, rest, strict=False))
        yield entry


def run_starts(*keys: Int32s | Int64s) -> Int64s:
    """Where a run begins over which no key changes."""
    begins = np.zeros(len(keys[0]), np.bool_)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[1:] != key[:-1]
    return np.nonzero(begins)[0]


def _cut(values: Int32s, starts: Int64s) -> list[tuple[int, ...]]:
    """`values` cut into runs, one tuple each.

    There can be a million runs of one number each, so runs of one length are cut together. They are tuples, because
    the garbage collector stops tracking a tuple of integers after one pass, but visits a list again in every pass.
    """
    if len(starts) == len(values):
        return _singles(values)
    lengths = np.diff(starts, append=len(values))
    longest = int(lengths.max(initial=0))
    if longest == lengths.min(initial=longest):
        return _even_runs(values, longest)
    by_length = stable_order(lengths, below=longest + 1)
    ascending = lengths[by_length]
    changes = np.nonzero(np.diff(ascending, prepend=0))[0].tolist()
    runs: list[tuple[int, ...]] = []
    for first, end in pairwise([*changes, len(ascending)]):
        length = int(ascending[first])
        positions = starts[by_length[first:end], None] + np.arange(length)
        runs += _even_runs(values[positions].ravel(), length)
    place = np.empty(len(by_length), np.int64)
    place[by_length] = np.arange(len(by_length))
    return list(map(runs.__getitem__, place.tolist()))


def _even_runs(values: Int32s, length: int) -> list[tuple[int, ...]]:
    """`values` cut into runs of one length."""
    if length == 1:
        return _singles(values)
    flat = iter(values.tolist())
    return list(zip(*[flat] * length, strict=True))


def _singles(values: Int32s) -> list[tuple[int, ...]]:
    """A tuple for each value, the same one for equal values: there are far fewer numbers than partitions."""
    tuples = np.empty(int(values.max(initial=-1)) + 1, np.object_)
    tuples[:] = [(number,) for number in range(len(tuples))]
    found: list[tuple[int, ...]] = tuples[values].tolist()
    return found
