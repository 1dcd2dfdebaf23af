"""The partitions of a group as one dense range of integers.

Topics are sorted by name, partitions inside a topic by number; the position in this order is the *partition index*.
Arrays by partition have an entry for each index. Example::

    topics           a (2 partitions)   b (3 partitions)
    partition index  0     1            2    3    4
    partition        a-0   a-1          b-0  b-1  b-2
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from assignor.errors import InvalidGroupError
from assignor.model.arrays import Bools, Int32s, Int64s, stable_order
from assignor.model.java_order import java_order

_PER_COLUMN = 64
_FEW_COLUMNS = 64
"""Writing a column takes as long as sorting this many partitions; so few columns are fast in any case."""

_Value = TypeVar("_Value", bound=np.generic)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Topics:
    """T topics in Java's string order and the P partition indices they span."""

    names: tuple[str, ...]
    """T topic names, ascending, each once."""
    counts: Int64s
    """Partitions of each topic, >= 0."""
    offsets: Int64s = field(init=False)
    """T + 1 entries: topic t has the partition indices from offsets[t] up to, but without, offsets[t + 1]."""
    topic_of: Int32s = field(init=False)
    """Topic index of each partition."""
    number_of: Int32s = field(init=False)
    """Partition number, as Kafka counts it inside the topic, of each partition."""

    def __post_init__(self) -> None:
        keys = [java_order(name) for name in self.names]
        if any(left >= right for left, right in pairwise(keys)):
            raise InvalidGroupError("topic names must be ascending by UTF-16 code unit, each once")
        if self.counts.shape != (len(self.names),) or (self.counts < 0).any():
            raise InvalidGroupError("every topic needs one partition count >= 0")
        offsets = np.zeros(len(self.names) + 1, np.int64)
        np.cumsum(self.counts, out=offsets[1:])
        topic_of = np.repeat(np.arange(len(self.names), dtype=np.int32), self.counts)
        # In 32 bits throughout: half as much to write, and a million partitions are written for every group.
        first = np.repeat(offsets[:-1].astype(np.int32), self.counts)
        number_of = np.arange(offsets[-1], dtype=np.int32) - first
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "topic_of", topic_of)
        object.__setattr__(self, "number_of", number_of)

    @classmethod
    def of(cls, partition_counts: Mapping[str, int]) -> "Topics":
        """Topics of a plain mapping from name to partition count, in any order.

        Raises:
            InvalidGroupError: A count is negative.
        """
        names = tuple(sorted(partition_counts, key=java_order))
        counts = np.array([partition_counts[name] for name in names], np.int64)
        return cls(names=names, counts=counts)

    @property
    def n_topics(self) -> int:
        """Number of topics, T."""
        return len(self.names)

    @property
    def n_partitions(self) -> int:
        """Number of partitions, P."""
        return int(self.offsets[-1])

    def index(self) -> dict[str, int]:
        """Topic index of each name."""
        return {name: t for t, name in enumerate(self.names)}

    def partition_indices(self, topic: Int32s | Int64s, number: Int32s | Int64s) -> Int64s:
        """Return the partition index of each (topic index, partition number), -1 if the topic has no such partition.

        A topic index below 0 stands for an unknown topic and gives -1 as well.
        """
        index = np.full(len(topic), -1, np.int64)
        known = np.nonzero((topic >= 0) & (number >= 0))[0]
        inside = known[number[known] < self.counts[topic[known]]]
        index[inside] = self.offsets[topic[inside]] + number[inside]
        return index

    def by_partition(self, of_topic: npt.NDArray[_Value]) -> npt.NDArray[_Value]:
        """P entries: the value of each partition's topic."""
        # To repeat is to write in order, a hundred times as fast as to look up a million indices.
        return np.repeat(of_topic, self.counts)

    def name(self, partition: int) -> str:
        """The partition as people write it, `topic-number`."""
        return f"{self.names[self.topic_of[partition]]}-{self.number_of[partition]}"

    def spread_order(self, partitions: Int64s) -> Int64s:
        """Ascending partition indices rearranged by (partition number, topic name): t0-0, t1-0, ..., t0-1, t1-1, ...

        Giving partitions out in this order spreads every topic over the members (KIP-615; KAFKA-16277).

        Complexity: O(P) below 65,537 partitions per topic.
        """
        return partitions[stable_order(self.number_of[partitions], below=int(self.counts.max(initial=0)))]

    def dealt(self, values: Int32s, wanted: Bools) -> Int32s | None:
        """P entries: the values, given out in spread order to all partitions of the wanted topics; -1 to the others.

        The same as by `spread_order`, without a sort: between one count and the next, each number is there in the
        same topics, so what these get is a rectangle, numbers by topics, of which each topic has a column.

        Args:
            values: One for each of those partitions.
            wanted: T entries.

        Returns:
            None where topics have too many different counts, and a sort is faster.
        """
        counts = np.where(wanted, self.counts, 0)
        levels = np.unique(counts[counts > 0]).tolist()
        if len(levels) * self.n_topics > max(self.n_partitions // _PER_COLUMN, _FEW_COLUMNS):
            return None
        dealt = np.full(self.n_partitions, -1, np.int32)
        begin, low = 0, 0
        for level in levels:
            topics = np.nonzero(counts >= level)[0]
            end = begin + (level - low) * len(topics)
            rectangle = values[begin:end].reshape(level - low, len(topics))
            for column, offset in enumerate(self.offsets[topics].tolist()):
                dealt[offset + low : offset + level] = rectangle[:, column]
            begin, low = end, level
        return dealt
