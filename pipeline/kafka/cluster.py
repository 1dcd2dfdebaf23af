"""Source: inspects the Kafka cluster, and creates missing topics, before the stream starts."""

import logging
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from pipeline.config.model import ControlConfig, OffsetsFrom
from pipeline.errors import BrokerUnavailableError
from pipeline.kafka import offsets_topic
from pipeline.kafka.asking import answer
from pipeline.kafka.errors import error_of_call, explained
from pipeline.kafka.topic_configs import (
    AROUND_BYTES,
    LARGEST_RECORD,
    OFFSETS_TOPIC,
    TIMESTAMP_TYPE,
    TopicConfigs,
)

log = logging.getLogger(__name__)

_HIDDEN = (
    f'a managed service may hide {OFFSETS_TOPIC}: source.offsets = "auto" then asks coordinators instead'
)
# A broker learns of a new topic a moment after the controller has made it, and reports that to nobody.
_AGAIN_AFTER_S = 0.1
_COMPACTED = {"cleanup.policy": "compact"}
# A hand-over holds as long as its generation, which may be months; records of dead members must expire some day.
_ACKS = {
    "cleanup.policy": "compact,delete",
    "retention.ms": str(90 * 86_400_000),
    # Records of a follower with a wrong clock expire like all others.
    TIMESTAMP_TYPE: "LogAppendTime",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The cluster, as found at the start of the job."""

    cluster_id: str
    topics: tuple[str, ...]
    """Topics that the stream reads."""
    configs: TopicConfigs
    """Settings of these topics and of the control topic."""
    hidden: str | None = None
    """With "auto": why the offsets topic cannot be read; otherwise None."""
    is_tried: bool = False
    """With "auto": brokers do not report whether this user may read the offsets topic."""

    @property
    def reads_offsets(self) -> bool:
        """Whether the stream reads the offsets topic."""
        return OFFSETS_TOPIC in self.topics


def inspect(
    admin: AdminClient,
    control: ControlConfig,
    *,
    timeout_s: float,
    offsets: OffsetsFrom = "topic",
    is_refused: bool = False,
) -> Cluster:
    """Inspect the cluster; create missing topics of the job, and make the broker create a missing offsets topic.

    Args:
        admin: Client of the cluster.
        control: The job's own topics.
        timeout_s: Timeout of each request.
        offsets: Where commits come from; the offsets topic is created only if it is read.
        is_refused: Whether this user was refused when it read the offsets topic; it counts for "auto".

    Raises:
        KafkaException: No broker answered in time.
        AccessRefusedError: This user lacks a right for one of these steps.
        BrokerUnavailableError: A topic could not be created, or does not appear after its creation.
    """
    access = offsets_topic.Access()
    if offsets == "auto":
        access = offsets_topic.access_now(admin, timeout_s=timeout_s, is_refused=is_refused)
    reads_offsets = offsets != "admin" and access.why_not is None
    listed = admin.list_topics(timeout=timeout_s)
    _create_missing(admin, control, present=set(listed.topics), timeout_s=timeout_s)
    if reads_offsets and OFFSETS_TOPIC not in listed.topics:
        _have_offsets_topic_made(admin, timeout_s=timeout_s)
    read = (*((OFFSETS_TOPIC,) if reads_offsets else ()), *control.every_acks_topic, control.commands_topic)
    _wait_for(admin, (*read, control.topic), timeout_s=timeout_s)
    configs = TopicConfigs(admin, control, reads_offsets=reads_offsets)
    configs.ask_first(timeout_s=timeout_s)
    return Cluster(
        cluster_id=str(listed.cluster_id),
        topics=read,
        configs=configs,
        hidden=access.why_not,
        is_tried=not access.is_reported,
    )


def _create_missing(
    admin: AdminClient, control: ControlConfig, *, present: set[str], timeout_s: float
) -> None:
    wanted = [
        NewTopic(
            control.topic,
            num_partitions=control.partitions,
            config={**_COMPACTED, LARGEST_RECORD: str(control.max_record_bytes + AROUND_BYTES)},
        ),
        # One partition: records of one group keep their order.
        *(NewTopic(name, num_partitions=1, config=_ACKS) for name in control.every_acks_topic),
        NewTopic(control.commands_topic, num_partitions=1, config=_COMPACTED),
    ]
    missing = [topic for topic in wanted if topic.topic not in present]
    if missing:
        for name, future in admin.create_topics(
            missing, operation_timeout=timeout_s, request_timeout=timeout_s
        ).items():
            with explained(f"topic {name} cannot be created"):
                _created(future, timeout_s)
            log.info("topic created", extra={"topic": name})


def _have_offsets_topic_made(admin: AdminClient, *, timeout_s: float) -> None:
    # A request for any group's coordinator makes the broker create the topic, whatever the answer.
    # It must not be `list_consumer_group_offsets`: librdkafka 2.16 crashes the process when an admin client
    # gets NOT_COORDINATOR for it (rd_kafka_handle_OffsetFetch wants a consumer group that is not there).
    for future in admin.describe_consumer_groups(["lagwise-none"], request_timeout=timeout_s).values():
        future.exception(timeout=timeout_s + 5)


def _created(future: Future[Any], timeout_s: float) -> None:
    try:
        answer(future, timeout_s)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def _wait_for(admin: AdminClient, topics: tuple[str, ...], *, timeout_s: float) -> None:
    """Wait until the cluster lists the topics. Partitions without a leader are marked, and read later."""
    deadline = time.monotonic() + timeout_s
    while True:
        listed = admin.list_topics(timeout=timeout_s).topics
        missing = [topic for topic in topics if topic not in listed or not listed[topic].partitions]
        if not missing:
            return
        if time.monotonic() > deadline:
            for topic in missing:
                _refuse_hidden(admin, topic, timeout_s=timeout_s)
            hint = f"; {_HIDDEN}" if OFFSETS_TOPIC in missing else ""
            raise BrokerUnavailableError(
                f"the cluster did not list topics {', '.join(missing)} within {timeout_s:g} s; check its controller"
                f"{hint}"
            )
        time.sleep(_AGAIN_AFTER_S)


def _refuse_hidden(admin: AdminClient, topic: str, *, timeout_s: float) -> None:
    """Raise if the list lacks the topic because this user may not describe it, which Kafka reports for its name."""
    error = admin.list_topics(topic, timeout=timeout_s).topics[topic].error
    if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        raise error_of_call(f"topic {topic} cannot be used", error)
