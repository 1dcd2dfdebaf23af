"""Source: what must be known of the Kafka cluster, and be there, before the stream starts."""

import logging
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicMetadata,
)

from pipeline.config_model import ControlConfig
from pipeline.errors import BrokerUnavailableError
from pipeline.source import OFFSETS_TOPIC
from pipeline.trouble import explained, trouble

log = logging.getLogger(__name__)

_COMPACTED = {"cleanup.policy": "compact"}
# A hand-over holds as long as its generation, which may be months; the records of dead members have to go at last.
_ACKS = {"cleanup.policy": "compact,delete", "retention.ms": str(90 * 86_400_000)}
_LARGEST_RECORD = "max.message.bytes"
# Key, headers and what Kafka puts around a record. A group id that takes more is refused by the broker.
_AROUND_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster, as found when the job started."""

    cluster_id: str
    partitions: dict[str, int]
    """Number of partitions of each topic that the stream reads."""
    offsets_ends: dict[int, int]
    """High watermark of each partition of the offsets topic."""
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
    partitions = _wait_for(admin, (*read, control.topic), timeout_s=timeout_s)
    with explained(f"{OFFSETS_TOPIC} cannot be read"):
        ends = offsets_ends(admin, partitions[OFFSETS_TOPIC], timeout_s=timeout_s)
    max_record_bytes = _max_record_bytes(admin, control, timeout_s=timeout_s)
    return Cluster(
        cluster_id=str(listed.cluster_id),
        partitions={topic: partitions[topic] for topic in read},
        offsets_ends=ends,
        max_record_bytes=max_record_bytes,
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


def _max_record_bytes(admin: AdminClient, control: ControlConfig, *, timeout_s: float) -> int:
    wanted = control.max_record_bytes
    asked = admin.describe_configs(
        [ConfigResource(ResourceType.TOPIC, control.topic)], request_timeout=timeout_s
    )
    try:
        (found,) = [future.result(timeout=timeout_s + 5) for future in asked.values()]
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise
        # Whoever may write to a topic need not be allowed to read its configuration.
        return wanted
    allowed = int(found[_LARGEST_RECORD].value) - _AROUND_BYTES
    if allowed < wanted:
        log.warning(
            "the control topic takes smaller records than control.max_record_bytes",
            extra={
                "topic": control.topic,
                _LARGEST_RECORD: allowed + _AROUND_BYTES,
                "max_record_bytes": wanted,
            },
        )
    return min(wanted, allowed)


def _created(future: "Future[Any]", timeout_s: float) -> None:
    try:
        future.result(timeout=timeout_s + 5)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def _wait_for(admin: AdminClient, topics: tuple[str, ...], *, timeout_s: float) -> dict[str, int]:
    deadline = time.monotonic() + timeout_s
    found: dict[str, int] = {}
    while len(found) < len(topics):
        listed = admin.list_topics(timeout=timeout_s).topics
        found = {t: len(listed[t].partitions) for t in topics if t in listed and _is_led(listed[t])}
        if len(found) < len(topics) and time.monotonic() > deadline:
            missing = [topic for topic in topics if topic not in found]
            for topic in missing:
                _refuse_hidden(admin, topic, timeout_s=timeout_s)
            raise BrokerUnavailableError(f"topics {', '.join(missing)} did not appear within {timeout_s:g} s")
    return found


def _refuse_hidden(admin: AdminClient, topic: str, *, timeout_s: float) -> None:
    """Raise if the topic is in no list because this user may not describe it; asked by its name, Kafka says so."""
    error = admin.list_topics(topic, timeout=timeout_s).topics[topic].error
    if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        raise trouble(f"topic {topic} cannot be used", error)


def _is_led(topic: TopicMetadata) -> bool:
    return bool(topic.partitions) and all(one.leader >= 0 for one in topic.partitions.values())


def offsets_ends(admin: AdminClient, partitions: int, *, timeout_s: float) -> dict[int, int]:
    """High watermark of each partition of the offsets topic.

    Raises:
        KafkaException: A broker did not answer for one of them.
    """
    latest = OffsetSpec.latest()
    asked = admin.list_offsets(
        {TopicPartition(OFFSETS_TOPIC, number): latest for number in range(partitions)},
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
        request_timeout=timeout_s,
    )
    return {one.partition: future.result(timeout=timeout_s + 5).offset for one, future in asked.items()}
