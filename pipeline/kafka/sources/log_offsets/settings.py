"""Source: the offsets that a batch requests, and the shares of its tasks."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pipeline.kafka.positions import PartitionKey
from pipeline.name_filter import NameFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOffsetsSettings:
    """Settings of the requests."""

    properties: dict[str, Any]
    """librdkafka properties; references to secrets are still unresolved, executors resolve their own."""
    topics_include: tuple[str, ...]
    topics_exclude: tuple[str, ...]
    """Regular expressions on the whole topic name; exclusion wins."""
    isolation: str
    request_timeout_s: float
    splits: int
    """Maximum number of tasks that ask at the same time; 0 for as many as Spark runs at once."""

    def wants(self, topic: str) -> bool:
        """Whether the patterns admit this topic."""
        return NameFilter(self.topics_include, self.topics_exclude).admits(topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Partitions that one task requests, by topic; the first share also has why the listing is incomplete."""

    topics: tuple[tuple[str, tuple[int, ...]], ...] = ()
    error: str | None = None
    carries_listing: bool = False
    brokers: int | None = None
    """Number of live brokers; None without the listing, or if it had no answer."""


def shared_out(topics: dict[str, list[int]], count: int, *, error: str | None = None) -> list[Share]:
    """`topics` in at most `count` shares whose partition counts differ by at most one.

    A large topic is split between shares. The first share carries the listing, even if it is empty, with why there may
    be more topics.
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
    """The share with these partitions added."""
    found = {topic: set(numbers) for topic, numbers in share.topics}
    for topic, number in partitions:
        found.setdefault(topic, set()).add(number)
    return replace(share, topics=tuple((topic, tuple(sorted(found[topic]))) for topic in sorted(found)))
