"""Source: how long topics keep their records, where time alone decides and the brokers say so.

Asked a few topics at a time and without waiting: what is answered meanwhile is there for the next batch. No default of
Kafka's is taken for an answer.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from pipeline.kafka.errors import FORBIDDEN, RIGHTS

log = logging.getLogger(__name__)

_AT_ONCE = 100
"""Topics asked about with one call; their answers take the driver some 20 ms."""
_AGAIN_AFTER_S = 600.0
# A right comes by somebody's hand, and each question without it is a line in the broker's log.
_REFUSED_AGAIN_AFTER_S = 3600.0
_UNANSWERED_AGAIN_AFTER_S = 60.0
_TIMEOUT_S = 10.0

_WANTED = ("cleanup.policy", "retention.bytes", "retention.ms")
_Entries = Mapping[str, Any]


def retention_ms_of(entries: _Entries) -> int | None:
    """How long the records of a topic with this configuration are kept, in ms.

    None where something else than time may delete them (size, compaction), where they are kept for ever, and where the
    configuration does not say.
    """
    values = {name: entries[name].value for name in _WANTED if name in entries}
    if values.get("cleanup.policy") != "delete" or values.get("retention.bytes") != "-1":
        return None
    kept = values.get("retention.ms")
    return int(kept) if kept is not None and int(kept) >= 0 else None


@final
class RetentionWatch:
    """Knows by and by how long topics keep their records; a call neither waits nor raises."""

    def __init__(self, admin: AdminClient, clock: Callable[[], float] = time.monotonic) -> None:
        """Ask nothing yet."""
        self._admin = admin
        self._clock = clock
        self._asked: dict[str, Future[_Entries]] = {}
        self._known: dict[str, int] = {}
        self._due_s: dict[str, float] = {}
        self._is_refusal_said = False

    def __call__(self, topics: Iterable[str]) -> Mapping[str, int]:
        """How long each topic keeps its records, in ms, where that is known.

        Args:
            topics: Those that are of interest now; nothing is asked about others.
        """
        wanted = dict.fromkeys(topics)
        for topic in [topic for topic, future in self._asked.items() if future.done()]:
            self._take(topic, self._asked.pop(topic))
        self._due_s = {topic: due_s for topic, due_s in self._due_s.items() if topic in wanted}
        self._known = {topic: kept for topic, kept in self._known.items() if topic in wanted}
        if not self._asked:
            self._ask(self._due(wanted))
        return dict(self._known)

    def _due(self, wanted: Iterable[str]) -> list[str]:
        """Those whose turn it is, the longest due first."""
        now_s = self._clock()
        due = sorted((self._due_s.get(topic, 0.0), topic) for topic in wanted)
        return [topic for due_s, topic in due[:_AT_ONCE] if due_s <= now_s]

    def _ask(self, topics: list[str]) -> None:
        if not topics:
            return
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        with suppress(KafkaException):
            asked = self._admin.describe_configs(resources, request_timeout=_TIMEOUT_S)
            self._asked = {resource.name: future for resource, future in asked.items()}

    def _take(self, topic: str, answer: "Future[_Entries]") -> None:
        """Keep what is answered; without an answer what was answered before, unless this user may not see it now."""
        failure = answer.exception()
        if failure is None:
            self._keep(topic, retention_ms_of(answer.result()), again_after_s=_AGAIN_AFTER_S)
        elif isinstance(failure, KafkaException) and failure.args[0].code() in FORBIDDEN:
            self._keep(topic, None, again_after_s=_REFUSED_AGAIN_AFTER_S)
            self._say_refused(topic, failure)
        else:
            self._due_s[topic] = self._clock() + _UNANSWERED_AGAIN_AFTER_S

    def _keep(self, topic: str, kept_ms: int | None, *, again_after_s: float) -> None:
        self._due_s[topic] = self._clock() + again_after_s
        self._known.pop(topic, None)
        if kept_ms is not None:
            self._known[topic] = kept_ms

    def _say_refused(self, topic: str, failure: KafkaException) -> None:
        if not self._is_refusal_said:
            self._is_refusal_said = True
            log.warning(
                "this user may not see how long topics keep their records: retention_seconds is unknown for them",
                extra={
                    "topic": topic,
                    "error": failure.args[0].str(),
                    "hint": f"allow DescribeConfigs on the topics whose lag is wanted ({RIGHTS})",
                },
            )
