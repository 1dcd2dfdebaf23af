"""Lag of the groups of a scenario, asked of the broker itself twice a second: no stream, no table in between."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from pipeline.operate.demo.scenario import Group, Scenario

BEHIND_S = 5.0
"""A group is drained when no partition has more unread records than come in so many seconds, at the commit that was
nearest to the log's end within a commit interval: between two commits what arrives is unread however fast a group is."""

_TIMEOUT_S = 10.0
_EVERY_S = 0.5
_COMMIT_IS_SEEN_S = 1.0
"""A commit a second is seen as it is made, give or take a look."""


@dataclass(slots=True, kw_only=True)
class Measured:
    """One group since `Ruler` was made."""

    points: list[tuple[float, int]] = field(default_factory=list)
    """Seconds, and records of lag, each partition's least of the last commit interval."""
    recent: deque[tuple[float, list[int]]] = field(default_factory=deque)
    """Seconds, and lag of each partition as committed, within that interval."""
    drained_s: float | None = None

    def least(self, at_s: float, lags: list[int], *, window_s: float) -> list[int]:
        """Least lag of each partition within a window that ends now."""
        self.recent.append((at_s, lags))
        while self.recent[0][0] < at_s - window_s:
            self.recent.popleft()
        return [min(of_partition) for of_partition in zip(*(seen for _, seen in self.recent), strict=True)]


class Ruler:
    """Measures groups that read one topic each, in the first phase of its traffic."""

    def __init__(self, bootstrap: str, scenario: Scenario) -> None:
        self.measured = {group.group_id: Measured() for group in scenario.groups}
        self._begun_s = time.monotonic()
        self._scenario = scenario
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        # Asking for a group's commits does not make a client its member.
        self._askers = {
            group.group_id: Consumer(
                {"bootstrap.servers": bootstrap, "group.id": group.group_id, "log_level": 0}
            )
            for group in scenario.groups
        }

    @property
    def passed_s(self) -> float:
        """Seconds since this was made."""
        return time.monotonic() - self._begun_s

    def rounds(self, *, at_most_s: float) -> Iterator[None]:
        """Measure, and let the caller look, until all groups are drained or the time is up."""
        while self.passed_s < at_most_s and not self._all_drained():
            self._measure()
            yield
            time.sleep(_EVERY_S)

    def close(self) -> None:
        for asker in self._askers.values():
            asker.close()

    def _all_drained(self) -> bool:
        return all(one.drained_s is not None for one in self.measured.values())

    def _measure(self) -> None:
        places = {
            topic.name: [TopicPartition(topic.name, number) for number in range(topic.partitions)]
            for topic in self._scenario.topics
        }
        asked = {place: OffsetSpec.latest() for group in places.values() for place in group}
        ends = {
            (place.topic, place.partition): future.result(_TIMEOUT_S).offset
            for place, future in self._admin.list_offsets(asked, request_timeout=_TIMEOUT_S).items()
        }
        rates = {topic.name: topic.rates(0.0) for topic in self._scenario.topics}
        for group in self._scenario.groups:
            (topic,) = group.topics
            self._note(group, self._lags(group, places[topic], ends), rates[topic])

    def _lags(
        self, group: Group, places: list[TopicPartition], ends: dict[tuple[str, int], int]
    ) -> list[int]:
        committed = self._askers[group.group_id].committed(places, timeout=_TIMEOUT_S)
        # Nothing committed is a negative offset; logs begin at 0 here.
        return [max(0, ends[one.topic, one.partition] - max(0, one.offset)) for one in committed]

    def _note(self, group: Group, lags: list[int], rates: list[float]) -> None:
        measured, at_s = self.measured[group.group_id], self.passed_s
        lags = measured.least(at_s, lags, window_s=group.commit_s - _COMMIT_IS_SEEN_S)
        measured.points.append((round(at_s, 1), sum(lags)))
        has_begun = max(lag for _, lag in measured.points) > 2 * BEHIND_S * sum(rates)
        keeps_up = all(lag <= BEHIND_S * rate + 1 for lag, rate in zip(lags, rates, strict=True))
        if measured.drained_s is None and has_begun and keeps_up:
            measured.drained_s = round(at_s, 1)
