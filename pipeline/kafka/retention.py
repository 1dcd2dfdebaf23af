"""Source: how long topics keep their records, where time alone decides and the brokers report it.

Requests are about a few topics at a time and do not block: the next batch has the answers. Kafka's defaults never stand
in for an answer.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ResourceType

from pipeline.kafka.asking import Asked, Entries, Outcome, allow, describe, outcome_of, values_of

log = logging.getLogger(__name__)

_AT_ONCE = 100
"""Topics of one call, whose answers take the driver some 20 ms."""
# An administrator has to grant a right, and each request without it is a line in the broker's log.
_AGAIN_AFTER_S: Mapping[Outcome, float] = {"known": 600.0, "refused": 3600.0, "silent": 60.0}
_TIMEOUT_S = 10.0

_WANTED = ("cleanup.policy", "retention.bytes", "retention.ms")


def retention_ms_of(entries: Entries) -> int | None:
    """Time that a topic with this configuration keeps its records, in ms.

    None if something other than time may delete them (size, compaction), if they are kept for ever, or if the
    configuration does not tell.
    """
    values = values_of(entries, _WANTED)
    if values.get("cleanup.policy") != "delete" or values.get("retention.bytes") != "-1":
        return None
    kept = values.get("retention.ms")
    return int(kept) if kept is not None and int(kept) >= 0 else None


@final
class RetentionWatch:
    """Learns over time how long topics keep their records; a call neither waits nor raises."""

    def __init__(self, admin: AdminClient, clock: Callable[[], float] = time.monotonic) -> None:
        """Ask nothing yet."""
        self._admin = admin
        self._asked = Asked(_AGAIN_AFTER_S, clock=clock)
        self._clock = clock
        self._open: dict[str, Future[Entries]] = {}
        self._dropped_at_s = 0.0
        """When open questions count as unanswered although the client has not ended them."""
        self._known: dict[str, int] = {}

    def __call__(self, topics: Iterable[str]) -> Mapping[str, int]:
        """Time that each of these topics keeps its records, in ms, where it is known; asks about no others."""
        wanted = dict.fromkeys(topics)
        for topic in [topic for topic, future in self._open.items() if future.done()]:
            self._take(topic, self._open.pop(topic))
        if self._clock() >= self._dropped_at_s:
            for topic in self._open:
                self._asked.note(topic, "silent")
            self._open = {}
        self._asked.keep_only(wanted)
        self._known = {topic: kept for topic, kept in self._known.items() if topic in wanted}
        if not self._open:
            self._ask(self._asked.due(wanted)[:_AT_ONCE])
        return dict(self._known)

    def _ask(self, topics: list[str]) -> None:
        if not topics:
            return
        self._dropped_at_s = self._clock() + 2 * _TIMEOUT_S
        with suppress(KafkaException):
            self._open = describe(self._admin, ResourceType.TOPIC, topics, timeout_s=_TIMEOUT_S)

    def _take(self, topic: str, future: "Future[Entries]") -> None:
        """Keep the answer; without one, keep the previous answer, unless this user has lost the right to see it."""
        failure = future.exception()
        outcome = "known" if failure is None else outcome_of(failure)
        if failure is not None and outcome == "refused" and not self._asked.has_refusal:
            log.warning(
                "this user may not see how long topics keep their records: retention_seconds is unknown for them",
                extra={
                    "topic": topic,
                    "error": failure.args[0].str(),
                    "hint": allow("DescribeConfigs on the topics whose lag is wanted"),
                },
            )
        self._asked.note(topic, outcome)
        if outcome == "silent":
            return
        kept_ms = retention_ms_of(future.result()) if failure is None else None
        self._known.pop(topic, None)
        if kept_ms is not None:
            self._known[topic] = kept_ms
