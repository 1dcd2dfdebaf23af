"""The control topic and the acks topic, as a follower reads and writes them."""

import logging
import time
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import ClusterMetadata

from assignor.clients.confluent.config import Config, FollowerConfigError, reader_config, writer_config
from assignor.clients.control import ControlState
from assignor.errors import DecodeError
from assignor.protocol import acks
from assignor.protocol.acks import AnyAck
from assignor.protocol.control import ControlRecord

log = logging.getLogger(__name__)

_TIMEOUT_S = 10.0
_AT_ONCE = 500


class FollowTopics:
    """Reads both topics without waiting. Acknowledgements are read from where the topic ends now.

    A member is named in no acknowledgement before it has joined, so it must be made before the consumer
    subscribes, and needs nothing older.

    Attributes:
        cluster: Name of the cluster in both topics.
        damaged_acks: Number of acknowledgements that could not be read.
    """

    def __init__(self, config: Config, *, control_topic: str, acks_topic: str, cluster: str | None) -> None:
        """Connect.

        Raises:
            FollowerConfigError: A topic is not there, or this user may not use it.
            KafkaException: The cluster does not answer.
        """
        self._acks_topic = acks_topic
        self._reader = Consumer(reader_config(config))
        self._writer = Producer(writer_config(config))
        control = self._find(control_topic)
        self._find(acks_topic)
        self.cluster = cluster or str(control.cluster_id)
        self.damaged_acks = 0
        self._noted: set[int] = set()
        self._control = ControlState(cluster=self.cluster, group=str(config["group.id"]))
        end = self._reader.get_watermark_offsets(TopicPartition(acks_topic, 0), timeout=_TIMEOUT_S)[1]
        self._reader.assign(
            [TopicPartition(control_topic, p, 0) for p in sorted(control.topics[control_topic].partitions)]
            + [TopicPartition(acks_topic, 0, end)]
        )

    def read(self) -> tuple[AnyAck, ...]:
        """What has arrived of the group's acknowledgements; plans are kept for `plan`."""
        self._writer.poll(0)
        acks = []
        for message in self._reader.consume(_AT_ONCE, 0):
            error = message.error()
            if error is not None:
                self._note(error)
            elif message.topic() != self._acks_topic:
                # What is read has a list; the type knows the dict that a producer may give as well.
                headers = cast("list[tuple[str, str | bytes | None]]", message.headers() or [])
                self._control.feed(message.key(), message.value(), headers)
            elif (ack := self._ack(message)) is not None:
                acks.append(ack)
        return tuple(acks)

    def plan(self) -> ControlRecord | None:
        """The plan that is valid now."""
        return self._control.plan(time.time_ns() // 1_000_000)

    def write(self, ack: AnyAck) -> None:
        """Send an acknowledgement, without waiting for it to arrive."""
        try:
            self._writer.produce(
                self._acks_topic, key=acks.encode_key(ack), value=acks.encode(ack), partition=0
            )
        except (BufferError, KafkaException) as error:
            # As if lost on the way: whoever waits for it says so, or gives up.
            log.warning("an acknowledgement was not sent", extra={"problem": str(error)})

    def close(self) -> None:
        """Send what is left, and disconnect."""
        self._writer.flush(_TIMEOUT_S)
        self._reader.close()

    def _find(self, name: str) -> ClusterMetadata:
        found: ClusterMetadata = self._reader.list_topics(name, timeout=_TIMEOUT_S)
        error = found.topics[name].error
        if error is not None:
            self._reader.close()
            problem = f"this topic cannot be used: {error.str()}; a member reads both topics, and writes acks"
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                problem = "this topic is not there; the lagwise stream makes it when it starts"
            raise FollowerConfigError(name, problem)
        return found

    def _note(self, error: KafkaError) -> None:
        if error.retriable() or error.code() in self._noted:
            return
        self._noted.add(error.code())
        log.warning("the control or acks topic cannot be read", extra={"problem": error.str()})

    def _ack(self, message: Message) -> AnyAck | None:
        key, value = message.key(), message.value()
        if key is None or value is None:
            return None
        try:
            about = acks.decode_key(key)
            if (about.cluster, about.group) != (self.cluster, self._control.group):
                return None
            return acks.decode(key, value)
        except DecodeError as error:
            self.damaged_acks += 1
            if self.damaged_acks == 1:
                log.warning(
                    "an acknowledgement is damaged; it and all like it are ignored",
                    extra={"group": self._control.group, "problem": str(error)},
                )
            return None
