"""What the brokers say of log ends and commits, asked all the time, and what was true when.

An answer was true at some moment between the question and the answer. A broker that does not answer leaves a gap.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

EVERY_S = 0.3
_ANSWER_WITHIN_S = 2.0
_STOPPED_WITHIN_S = 30.0

NEVER = -1
"""Offset of a group that has committed nothing."""


class Sample(NamedTuple):
    """An offset that was true at some moment between the two times, in s since the epoch."""

    asked_at: float
    answered_at: float
    offset: int


class Range(NamedTuple):
    """The least and the greatest that was true within a time."""

    least: float
    greatest: float

    def holds(self, offset: int) -> bool:
        """Whether the offset may have been true then."""
        return self.least <= offset <= self.greatest


def true_within(samples: Iterable[Sample], start: float, end: float) -> Range:
    """What an offset may have been between two times; infinite where nobody asked before or after."""
    known = list(samples)
    before = [s.offset for s in known if s.answered_at < start][-1:] or [-math.inf]
    after = [s.offset for s in known if s.asked_at > end][:1] or [math.inf]
    within = [s.offset for s in known if s.answered_at >= start and s.asked_at <= end]
    offsets = [*before, *within, *after]
    return Range(min(offsets), max(offsets))


class BrokerTruth:
    """Asks for as long as the `with` block lasts, one thread for each topic and one for each group.

    Attributes:
        ends: By topic and partition.
        commits: By group, topic and partition.
    """

    def __init__(
        self, bootstrap: str, topics: Mapping[str, int], groups: Mapping[str, Iterable[str]]
    ) -> None:
        """Ask nothing yet.

        Args:
            bootstrap: Past the proxies.
            topics: Number of partitions of each.
            groups: Topics that each commits.
        """
        self.ends = {(topic, p): list[Sample]() for topic, count in topics.items() for p in range(count)}
        self.commits = {
            (g, t, p): list[Sample]() for g, of in groups.items() for t in of for p in range(topics[t])
        }
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        asked = [
            *(self._asker("truth", lambda reader, key=key: self._ask_end(reader, *key)) for key in self.ends),
            *(self._asker(g, lambda reader, g=g: self._ask_commits(reader, g)) for g in groups),
        ]
        self._threads = [threading.Thread(target=one, daemon=True) for one in asked]

    def __enter__(self) -> "BrokerTruth":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(_STOPPED_WITHIN_S)

    def is_known_since(self, at: float) -> bool:
        """Whether every question put after this time has had an answer."""
        everything = (*self.ends.values(), *self.commits.values())
        return all(samples and samples[-1].asked_at > at for samples in everything)

    def _asker(self, group: str, ask: Callable[[Consumer], None]) -> Callable[[], None]:
        def run() -> None:
            while not self._stop.is_set():
                reader = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "log_level": 0})
                # What a client knows of leaders and coordinators may be out of date: after an error another one asks.
                with suppress(KafkaException):
                    while not self._stop.wait(EVERY_S):
                        ask(reader)
                reader.close()

        return run

    def _ask_end(self, reader: Consumer, topic: str, partition: int) -> None:
        asked_at = time.time()
        found = reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=_ANSWER_WITHIN_S)
        self.ends[topic, partition].append(Sample(asked_at, time.time(), found[1]))

    def _ask_commits(self, reader: Consumer, group: str) -> None:
        wanted = [TopicPartition(topic, p) for g, topic, p in self.commits if g == group]
        asked_at = time.time()
        found = reader.committed(wanted, timeout=_ANSWER_WITHIN_S)
        for one in found:
            if one.error is None:
                sample = Sample(asked_at, time.time(), max(one.offset, NEVER))
                self.commits[group, one.topic, one.partition].append(sample)
