"""Source: what a tick asks the brokers for, and how the tasks of a tick share it."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql.datasource import InputPartition

from pipeline.name_filter import NameFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOffsetsSettings:
    """What to ask, and how; travels to the executors as one JSON option."""

    properties: dict[str, Any]
    """librdkafka properties; references to secrets are still unresolved, executors resolve their own."""
    topics_include: tuple[str, ...]
    topics_exclude: tuple[str, ...]
    """Regular expressions on the whole topic name; exclusion wins."""
    isolation: str
    request_timeout_s: float
    splits: int
    """Most tasks that ask at the same time."""

    def to_json(self) -> str:
        """One line that `from_json` reads back."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "LogOffsetsSettings":
        """The settings that `to_json` wrote."""
        fields = json.loads(text)
        for name in ("topics_include", "topics_exclude"):
            fields[name] = tuple(fields[name])
        return cls(**fields)

    def wants(self, topic: str) -> bool:
        """Whether the patterns let this topic through."""
        return NameFilter(self.topics_include, self.topics_exclude).admits(topic)


@dataclass
class Slice(InputPartition):
    """One task's share: partition numbers by topic; and in the first, why the listing is not complete."""

    topics: list[tuple[str, list[int]]]
    error: str | None = None
    carries_listing: bool = False


def slices(topics: dict[str, list[int]], count: int) -> list[Slice]:
    """`topics` in at most `count` shares whose partition counts differ by at most one.

    A large topic is split between shares. The first share carries the listing, also when it is empty.
    """
    flat = [(topic, number) for topic in sorted(topics) for number in sorted(topics[topic])]
    size = max(1, -(-len(flat) // count))
    shares: list[Slice] = []
    for begin in range(0, max(len(flat), 1), size):
        share: dict[str, list[int]] = {}
        for topic, number in flat[begin : begin + size]:
            share.setdefault(topic, []).append(number)
        shares.append(Slice(topics=list(share.items()), carries_listing=begin == 0))
    return shares
