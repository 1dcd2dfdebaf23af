"""Who may own what: the subscriber sets of a group.

Topics with the same subscribers share one set, so a group in which everybody reads everything needs one set
of N members however many topics it has.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from assignor.model.arrays import Bools, Int32s, Int64s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subscriptions:
    """S distinct subscriber sets over N members, and the set of each of T topics."""

    n_members: int
    """Number of members, N."""
    set_of_topic: Int32s
    """T entries: the subscriber set of each topic, 0 <= set < S."""
    offsets: Int64s
    """S + 1 entries: set s is members[offsets[s]:offsets[s + 1]]."""
    members: Int32s
    """Member indices, ascending inside a set. A set may be empty."""

    @classmethod
    def everyone(cls, *, n_topics: int, n_members: int) -> "Subscriptions":
        """Every member subscribes to every topic."""
        return cls(
            n_members=n_members,
            set_of_topic=np.zeros(n_topics, np.int32),
            offsets=np.array([0, n_members], np.int64),
            members=np.arange(n_members, dtype=np.int32),
        )

    @classmethod
    def of(cls, subscribed: Sequence[Collection[str]], *, index: Mapping[str, int]) -> "Subscriptions":
        """Subscriber sets from the topic names of each member; names missing from `index` are left out.

        Complexity: O(total length) plus one step per (distinct subscription, topic).
        """
        subscribers: dict[tuple[str, ...], list[int]] = {}
        last: Collection[str] | None = None
        members: list[int] = []
        for member, names in enumerate(subscribed):
            # To look up hundreds of names takes longer than everything else; often it is one object for all.
            if names is not last:
                members, last = subscribers.setdefault(tuple(names), []), names
            members.append(member)
        # Members with one subscription are treated as one, for there are few distinct subscriptions.
        readers: list[list[int]] = [[] for _ in index]
        groups = list(subscribers.values())
        for group, names in enumerate(subscribers):
            for name in index.keys() & names:
                readers[index[name]].append(group)
        sets: dict[tuple[int, ...], int] = {}
        set_of_topic = [sets.setdefault(tuple(reader), len(sets)) for reader in readers]
        rows = [sorted(chain.from_iterable(groups[group] for group in reader)) for reader in sets]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return cls(
            n_members=len(subscribed),
            set_of_topic=np.array(set_of_topic, np.int32),
            offsets=offsets,
            members=np.array([*chain.from_iterable(rows)], np.int32),
        )

    def without(self, members: Bools) -> "Subscriptions":
        """Return the same subscriber sets without some members (N entries); indices stay the same."""
        stays = ~members[self.members]
        before: Int64s = np.concatenate((np.zeros(1, np.int64), np.cumsum(stays, dtype=np.int64)))
        return replace(self, offsets=before[self.offsets], members=self.members[stays])

    @property
    def n_sets(self) -> int:
        """Number of subscriber sets, S."""
        return len(self.offsets) - 1

    def set_members(self, subscriber_set: int) -> Int32s:
        """Members of one subscriber set, ascending."""
        return self.members[self.offsets[subscriber_set] : self.offsets[subscriber_set + 1]]

    def of_topic(self, topic: int) -> Int32s:
        """Members that subscribe to one topic, ascending."""
        return self.set_members(int(self.set_of_topic[topic]))

    def set_sizes(self) -> Int64s:
        """Members in each of the S sets."""
        sizes: Int64s = self.offsets[1:] - self.offsets[:-1]
        return sizes

    def subscriber_counts(self) -> Int64s:
        """Members that subscribe to each of the T topics."""
        return self.set_sizes()[self.set_of_topic]

    def in_any(self, sets: Bools) -> Bools:
        """N entries: is the member in any of the chosen sets (S entries)."""
        chosen = np.zeros(self.n_members, np.bool_)
        chosen[self.members[np.repeat(sets, self.set_sizes())]] = True
        return chosen

    def matrix(self) -> Bools:
        """S x N: does the set hold the member."""
        held = np.zeros((self.n_sets, self.n_members), np.bool_)
        held[np.repeat(np.arange(self.n_sets), self.set_sizes()), self.members] = True
        return held

    def allows(self, topic: Int32s, member: Int32s) -> Bools:
        """Elementwise: does the member (>= 0) subscribe to the topic."""
        if (self.set_sizes() == self.n_members).all():
            return np.ones(len(topic), np.bool_)
        return self.matrix()[self.set_of_topic[topic], member]
