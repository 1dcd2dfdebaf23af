"""Source: what must be known of the Kafka cluster, and be there, before the stream starts."""

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from pipeline.config_model import ControlConfig
from pipeline.errors import BrokerUnavailableError
from pipeline.source import OFFSETS_TOPIC
from pipeline.trouble import RIGHTS, explained, trouble

log = logging.getLogger(__name__)

_COMPACTED = {"cleanup.policy": "compact"}
# A hand-over holds as long as its generation, which may be months; the records of dead members have to go at last.
_TIMESTAMP_TYPE = "message.timestamp.type"
_ACKS = {
    "cleanup.policy": "compact,delete",
    "retention.ms": str(90 * 86_400_000),
    # What a follower with a wrong clock writes expires like everything else.
    _TIMESTAMP_TYPE: "LogAppendTime",
}
_KAFKAS_TOMBSTONES_KEPT_MS = 86_400_000
_LARGEST_RECORD = "max.message.bytes"
_CONFIG_ATTEMPTS = 3
# Key, headers and what Kafka puts around a record. A group id that takes more is refused by the broker.
_AROUND_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster, as found when the job started."""

    cluster_id: str
    topics: tuple[str, ...]
    """Whose records the stream reads."""
    tombstones_kept_ms: int
    """How long the offsets topic shows that something was deleted."""
    max_record_bytes: int
    """Of a control record: what the configuration or the topic allows, whichever is less."""


def inspect(admin: AdminClient, control: ControlConfig, *, timeout_s: float) -> Cluster:
    """Look at the cluster; create the job's own topics, and have the broker create the offsets topic, if absent.

    Raises:
        KafkaException: No broker answered in time.
        AccessRefusedError: This user may not do something of this.
        BrokerUnavailableError: A topic could not be made, or is not there after it was.
    """
    listed = admin.list_topics(timeout=timeout_s)
    _create_missing(admin, control, present=set(listed.topics), timeout_s=timeout_s)
    read = (OFFSETS_TOPIC, control.acks_topic, control.commands_topic)
    _wait_for(admin, (*read, control.topic), timeout_s=timeout_s)
    configs = TopicConfigs(admin, (OFFSETS_TOPIC, control.topic, control.acks_topic), timeout_s=timeout_s)
    _advise_on_acks(configs, control.acks_topic)
    return Cluster(
        cluster_id=str(listed.cluster_id),
        topics=read,
        tombstones_kept_ms=_tombstones_kept_ms(configs),
        max_record_bytes=_max_record_bytes(configs, control),
    )


def _create_missing(
    admin: AdminClient, control: ControlConfig, *, present: set[str], timeout_s: float
) -> None:
    wanted = [
        NewTopic(
            control.topic,
            num_partitions=control.partitions,
            config={**_COMPACTED, _LARGEST_RECORD: str(control.max_record_bytes + _AROUND_BYTES)},
        ),
        # One partition: all that is said about a group keeps its order.
        NewTopic(control.acks_topic, num_partitions=1, config=_ACKS),
        NewTopic(control.commands_topic, num_partitions=1, config=_COMPACTED),
    ]
    missing = [topic for topic in wanted if topic.topic not in present]
    if missing:
        for name, future in admin.create_topics(
            missing, operation_timeout=timeout_s, request_timeout=timeout_s
        ).items():
            with explained(f"topic {name} cannot be made"):
                _created(future, timeout_s)
            log.info("topic created", extra={"topic": name})
    if OFFSETS_TOPIC not in present:
        # Asking for any group's coordinator makes the broker create the topic; the answer does not matter.
        # It must not be `list_consumer_group_offsets`: librdkafka 2.16 crashes the process when an admin client
        # gets NOT_COORDINATOR for it (rd_kafka_handle_OffsetFetch wants a consumer group that is not there).
        for future in admin.describe_consumer_groups(["lagwise-none"], request_timeout=timeout_s).values():
            future.exception(timeout=timeout_s + 5)


class TopicConfigs:
    """What the brokers say of some topics' configuration, as far as this user may see it."""

    def __init__(self, admin: AdminClient, topics: tuple[str, ...], *, timeout_s: float) -> None:
        """Ask; a topic without an answer has no values, and the log says once what that means."""
        self._found: dict[str, Mapping[str, Any]] = {}
        failed = self._ask(admin, topics, timeout_s)
        for _ in range(_CONFIG_ATTEMPTS - 1):
            silent = tuple(topic for topic, error in failed.items() if error.code() == KafkaError._TIMED_OUT)  # noqa: SLF001 - public constant
            if not silent:
                break
            # The question goes to the controller, and KRaft names any broker as that, another one with each listing.
            with suppress(KafkaException):
                admin.list_topics(timeout=timeout_s)
            failed = {
                **{topic: error for topic, error in failed.items() if topic not in silent},
                **self._ask(admin, silent, timeout_s),
            }
        for topic, error in failed.items():
            log.warning(
                "a topic's configuration is not known, Kafka's defaults are assumed",
                extra={"topic": topic, "error": error.str(), "hint": RIGHTS},
            )

    def _ask(self, admin: AdminClient, topics: tuple[str, ...], timeout_s: float) -> dict[str, KafkaError]:
        """Keep what is answered; why the other topics were not."""
        asked = {
            topic: admin.describe_configs(
                [ConfigResource(ResourceType.TOPIC, topic)], request_timeout=timeout_s
            )
            for topic in topics
        }
        failed: dict[str, KafkaError] = {}
        for topic, futures in asked.items():
            (future,) = futures.values()
            try:
                self._found[topic] = future.result(timeout=timeout_s + 5)
            except KafkaException as failure:
                failed[topic] = failure.args[0]
        return failed

    def value(self, topic: str, name: str) -> str | None:
        """The value, or None when it is not known."""
        entry = self._found.get(topic, {}).get(name)
        return None if entry is None else str(entry.value)


def _tombstones_kept_ms(configs: TopicConfigs) -> int:
    kept = configs.value(OFFSETS_TOPIC, "delete.retention.ms")
    return _KAFKAS_TOMBSTONES_KEPT_MS if kept is None else int(kept)


def _advise_on_acks(configs: TopicConfigs, topic: str) -> None:
    if configs.value(topic, _TIMESTAMP_TYPE) == "CreateTime":
        log.warning(
            "the acks topic keeps the times that its writers name: a follower with a wrong clock can keep its records "
            "from expiring; set message.timestamp.type=LogAppendTime on the topic",
            extra={"topic": topic},
        )


def _max_record_bytes(configs: TopicConfigs, control: ControlConfig) -> int:
    wanted = control.max_record_bytes
    largest = configs.value(control.topic, _LARGEST_RECORD)
    if largest is None:
        # Without it a topic that takes less shows only when it refuses a record.
        return wanted
    allowed = int(largest) - _AROUND_BYTES
    if allowed < wanted:
        log.warning(
            "the control topic takes smaller records than control.max_record_bytes",
            extra={"topic": control.topic, _LARGEST_RECORD: int(largest), "max_record_bytes": wanted},
        )
    return min(wanted, allowed)


def _created(future: "Future[Any]", timeout_s: float) -> None:
    try:
        future.result(timeout=timeout_s + 5)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def _wait_for(admin: AdminClient, topics: tuple[str, ...], *, timeout_s: float) -> None:
    """Return when the cluster knows the topics. Leaders are not waited for: what has none is marked, and read later."""
    deadline = time.monotonic() + timeout_s
    while True:
        listed = admin.list_topics(timeout=timeout_s).topics
        missing = [topic for topic in topics if topic not in listed or not listed[topic].partitions]
        if not missing:
            return
        if time.monotonic() > deadline:
            for topic in missing:
                _refuse_hidden(admin, topic, timeout_s=timeout_s)
            raise BrokerUnavailableError(f"topics {', '.join(missing)} did not appear within {timeout_s:g} s")


def _refuse_hidden(admin: AdminClient, topic: str, *, timeout_s: float) -> None:
    """Raise if the topic is in no list because this user may not describe it; asked by its name, Kafka says so."""
    error = admin.list_topics(topic, timeout=timeout_s).topics[topic].error
    if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        raise trouble(f"topic {topic} cannot be used", error)
