"""An assignment in names, as plug-ins send it to members and as the answer to a JSON case has it."""

from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

import numpy as np

from assignor.model.arrays import Int32s, Int64s, stable_order
from assignor.model.group import Group
from assignor.model.topics import Topics

Placed = dict[str, tuple[int, ...]]
"""Partition numbers by topic name."""


def by_member(group: Group, member: Int32s) -> dict[str, Placed]:
    """Member id -> topic -> numbers: members in tie-break order, topics and numbers ascending.

    A member without partitions has an empty entry; a partition without a member is in none. The entries are
    as `Member.owned` takes them.

    Args:
        group: The group that was assigned.
        member: Member index of each of P partitions, -1 for nobody.

    Complexity: O(P + N).
    """
    placed = np.nonzero(member >= 0)[0]
    partitions = placed[stable_order(member[placed], below=group.n_members)]
    holder, topic = member[partitions], group.topics.topic_of[partitions]
    starts = _run_starts(holder, topic)
    entries = _entries(group.topics, partitions, starts)
    sizes = np.bincount(holder[starts], minlength=group.n_members).tolist()
    return {
        member_id: dict(islice(entries, size))
        for member_id, size in zip(group.member_ids, sizes, strict=True)
    }


def by_topic(topics: Topics, partitions: Int64s) -> Placed:
    """Topic -> numbers, for ascending partition indices."""
    return dict(_entries(topics, partitions, _run_starts(topics.topic_of[partitions])))


def _run_starts(*keys: Int32s) -> Int64s:
    """Where a run begins over which no key changes."""
    begins = np.ones(len(keys[0]), np.bool_)
    begins[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.nonzero(begins)[0]


def _entries(topics: Topics, partitions: Int64s, starts: Int64s) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Topic name and numbers of each run of one topic."""
    names = map(topics.names.__getitem__, topics.topic_of[partitions[starts]].tolist())
    return zip(names, _cut(topics.number_of[partitions], starts), strict=True)


def _cut(values: Int32s, starts: Int64s) -> Iterable[tuple[int, ...]]:
    """`values` cut into runs, one tuple each.

    There can be a million runs of one number each, so runs of one length are cut together. They are tuples, because
    the garbage collector stops tracking a tuple of integers after one pass, but visits a list again in every pass.
    """
    lengths = np.diff(starts, append=len(values))
    by_length = stable_order(lengths, below=int(lengths.max(initial=0)) + 1)
    ascending = lengths[by_length]
    changes = np.nonzero(np.diff(ascending, prepend=0))[0].tolist()
    runs: list[tuple[int, ...]] = []
    for first, end in pairwise([*changes, len(ascending)]):
        length = int(ascending[first])
        positions = starts[by_length[first:end], None] + np.arange(length)
        flat = iter(values[positions].ravel().tolist())
        runs.extend(zip(*[flat] * length, strict=True))
    if len(changes) <= 1:
        return runs
    place = np.empty(len(by_length), np.int64)
    place[by_length] = np.arange(len(by_length))
    return map(runs.__getitem__, place.tolist())
