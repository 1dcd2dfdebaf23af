"""Source: configuration of the job's topics, as far as the brokers report it.

A setting that no broker has returned, or that this user may not see, is unknown: Kafka's default never stands in for
it. It is requested again; after silence, in every batch.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ResourceType

from pipeline.config.model import ControlConfig
from pipeline.kafka.asking import Asked, Entries, allow, answer, describe, outcome_of, values_of

OFFSETS_TOPIC = "__consumer_offsets"


log = logging.getLogger(__name__)

LARGEST_RECORD = "max.message.bytes"
TIMESTAMP_TYPE = "message.timestamp.type"
# Key, headers and Kafka's own bytes around a record. The broker rejects a group id that takes more.
AROUND_BYTES = 4096

_TOMBSTONES_KEPT = "delete.retention.ms"
_WITHOUT = {
    _TOMBSTONES_KEPT: "partitions that were not read for a while are read again from their start",
    TIMESTAMP_TYPE: "a follower with a wrong clock may keep its records from expiring, without a warning",
    LARGEST_RECORD: "a plan that is too large for the topic is noticed only when the brokers reject it",
}
_FIRST_ATTEMPTS = 3
# A batch waits for this time.
_AGAIN_TIMEOUT_S = 1.0
# An administrator has to grant a right, and each request without it is a line in the broker's log.
_REFUSED_EVERY_S = 300.0
_HINTS = {
    "refused": allow("DescribeConfigs on the topic"),
    "silent": "lagwise asks again in every batch; check the brokers if this persists",
}
_UNKNOWN = {
    "refused": "the configuration of a topic is unknown: this user may not see it",
    "silent": "the configuration of a topic is unknown: the brokers did not answer",
}


@final
class TopicConfigs:
    """Asks until everything is known; logs once per topic what is unknown, and why."""

    def __init__(
        self,
        admin: AdminClient,
        control: ControlConfig,
        *,
        reads_offsets: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask nothing yet; about the offsets topic only if it is read."""
        self._admin = admin
        self._control = control
        self._wanted = {
            **({OFFSETS_TOPIC: (_TOMBSTONES_KEPT,)} if reads_offsets else {}),
            **dict.fromkeys(control.every_acks_topic, (_TOMBSTONES_KEPT, TIMESTAMP_TYPE)),
            control.commands_topic: (_TOMBSTONES_KEPT,),
            control.topic: (LARGEST_RECORD,),
        }
        self._found: dict[str, dict[str, str]] = {}
        self._asked = Asked({"known": math.inf, "refused": _REFUSED_EVERY_S}, clock=clock)

    def ask_first(self, *, timeout_s: float) -> None:
        """Ask for everything, repeatedly while no broker answers."""
        self._learn(self._wanted, attempts=_FIRST_ATTEMPTS, timeout_s=timeout_s)

    def ask_again(self) -> None:
        """Ask for what is unknown; it takes a batch three seconds at most."""
        due = self._asked.due(self._wanted)
        if due:
            self._look_elsewhere(_AGAIN_TIMEOUT_S)
            self._learn(due, attempts=1, timeout_s=_AGAIN_TIMEOUT_S)

    def tombstones_kept_ms(self, topic: str) -> int | None:
        """Time that the topic keeps tombstones; None if unknown."""
        kept = self._found.get(topic, {}).get(_TOMBSTONES_KEPT)
        return None if kept is None else int(kept)

    @property
    def max_record_bytes(self) -> int:
        """Size limit of a control record: `control.max_record_bytes`, or the topic's, if known and smaller."""
        wanted = self._control.max_record_bytes
        largest = self._found.get(self._control.topic, {}).get(LARGEST_RECORD)
        return wanted if largest is None else min(wanted, int(largest) - AROUND_BYTES)

    def _learn(self, topics: Iterable[str], *, attempts: int, timeout_s: float) -> None:
        failed = self._ask(topics, timeout_s)
        for _ in range(attempts - 1):
            silent = [topic for topic, failure in failed.items() if outcome_of(failure) == "silent"]
            if not silent:
                break
            self._look_elsewhere(timeout_s)
            failed = {topic: one for topic, one in failed.items() if topic not in silent} | self._ask(
                silent, timeout_s
            )
        for topic, failure in failed.items():
            self._say_unknown(topic, failure)

    def _look_elsewhere(self, timeout_s: float) -> None:
        # The request goes to the controller, and KRaft names another broker as that with each listing.
        with suppress(KafkaException):
            self._admin.list_topics(timeout=timeout_s)

    def _ask(self, topics: Iterable[str], timeout_s: float) -> dict[str, KafkaException]:
        """Keep the answers; return the errors of the other topics."""
        asked = {
            topic: describe(self._admin, ResourceType.TOPIC, [topic], timeout_s=timeout_s)[topic]
            for topic in topics
        }
        failed: dict[str, KafkaException] = {}
        for topic, future in asked.items():
            try:
                self._take(topic, answer(future, timeout_s))
            except KafkaException as failure:
                failed[topic] = failure
        return failed

    def _take(self, topic: str, entries: Entries) -> None:
        found = self._found[topic] = values_of(entries, self._wanted[topic])
        if self._asked.note(topic, "known") is not None:
            log.info("the configuration of a topic is known now", extra={"topic": topic, **found})
        missing = [name for name in self._wanted[topic] if name not in found]
        if missing:
            log.warning(
                "the brokers do not return the configuration of a topic", extra=_about(topic, missing)
            )
        self._advise(topic)

    def _say_unknown(self, topic: str, failure: KafkaException) -> None:
        outcome = outcome_of(failure)
        if self._asked.note(topic, outcome) != outcome:
            about = _about(topic, self._wanted[topic])
            log.warning(
                _UNKNOWN[outcome],
                extra={**about, "error": failure.args[0].str(), "hint": _HINTS[outcome]},
            )

    def _advise(self, topic: str) -> None:
        found, wanted = self._found[topic], self._control.max_record_bytes
        if found.get(TIMESTAMP_TYPE) == "CreateTime":
            log.warning(
                "an acks topic keeps the timestamps of its producers: a follower with a wrong clock can keep its "
                "records from expiring; set message.timestamp.type=LogAppendTime on the topic",
                extra={"topic": topic},
            )
        if self.max_record_bytes < wanted and LARGEST_RECORD in found:
            log.warning(
                "the control topic accepts only records smaller than control.max_record_bytes",
                extra={
                    "topic": topic,
                    LARGEST_RECORD: int(found[LARGEST_RECORD]),
                    "max_record_bytes": wanted,
                },
            )


def _about(topic: str, names: Iterable[str]) -> dict[str, str]:
    return {
        "topic": topic,
        "unknown": ", ".join(names),
        "meanwhile": "; ".join(_WITHOUT[name] for name in names),
    }
