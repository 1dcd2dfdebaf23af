"""Source: what a batch asks the brokers for, and how the tasks of a batch share it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pipeline.kafka.positions import PartitionKey
from pipeline.name_filter import NameFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOffsetsSettings:
    """What to ask, and how."""

    properties: dict[str, Any]
    """librdkafka properties; references to secrets are still unresolved, executors resolve their own."""
    topics_include: tuple[str, ...]
    topics_exclude: tuple[str, ...]
    """Regular expressions on the whole topic name; exclusion wins."""
    isolation: str
    request_timeout_s: float
    splits: int
    """Most tasks that ask at the same time; 0 for as many as Spark runs at once."""

    def wants(self, topic: str) -> bool:
        """Whether the patterns let this topic through."""
        return NameFilter(self.topics_include, self.topics_exclude).admits(topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What is asked for together: partition numbers by topic; and in the first, why the listing is not complete."""

    topics: tuple[tuple[str, tuple[int, ...]], ...] = ()
    error: str | None = None
    carries_listing: bool = False
    brokers: int | None = None
    """Live ones, by the listing; None where it is not carried, or had no answer."""


def shared_out(topics: dict[str, list[int]], count: int, *, error: str | None = None) -> list[Share]:
    """`topics` in at most `count` shares whose partition counts differ by at most one.

    A large topic is split between shares. The first share carries the listing, also when it is empty.

    Args:
        topics: Partition numbers by topic.
        count: Of the shares.
        error: Why there may be more topics.
    """
    flat = [(topic, number) for topic in sorted(topics) for number in sorted(topics[topic])]
    size = max(1, -(-len(flat) // count))
    shares: list[Share] = []
    for begin in range(0, max(len(flat), 1), size):
        share: dict[str, list[int]] = {}
        for topic, number in flat[begin : begin + size]:
            share.setdefault(topic, []).append(number)
        wanted = tuple((topic, tuple(numbers)) for topic, numbers in share.items())
        is_first = begin == 0
        shares.append(Share(topics=wanted, error=error if is_first else None, carries_listing=is_first))
    return shares


def with_partitions(share: Share, partitions: Iterable[PartitionKey]) -> Share:
    """The share with these partitions besides its own."""
    found = {topic: set(numbers) for topic, numbers in share.topics}
    for topic, number in partitions:
        found.setdefault(topic, set()).add(number)
    return replace(share, topics=tuple((topic, tuple(sorted(found[topic]))) for topic in sorted(found)))
