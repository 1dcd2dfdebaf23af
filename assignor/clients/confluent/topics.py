"""The control topic and the acks topic, as a follower reads and writes them: without waiting, and without failing."""

import logging
import threading
import time
import weakref
from collections import deque

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from assignor.clients.confluent.config import Config, writer_config
from assignor.clients.confluent.heard import Heard
from assignor.clients.confluent.reader import Names, TopicsReader
from assignor.protocol import acks
from assignor.protocol.acks import AnyAck
from assignor.protocol.control import ControlRecord

log = logging.getLogger(__name__)

_FLUSH_S = 5.0
_JOIN_S = 2.0


class FollowTopics:
    """What a follower hears and says. It is never without an answer: topics that cannot be used say nothing."""

    def __init__(self, config: Config, *, control_topic: str, acks_topic: str, cluster: str | None) -> None:
        """Begin to read.

        Raises:
            KafkaException: The client refuses a property.
        """
        self._acks_topic = acks_topic
        self._writer = Producer(writer_config(config))
        self._heard = Heard()
        self._undelivered: deque[AnyAck] = deque()
        self._is_mute = False
        names = Names(control=control_topic, acks=acks_topic, cluster=cluster, group=str(config["group.id"]))
        reader = TopicsReader(config, names, self._heard)
        self._thread: threading.Thread = reader.start()
        # A follower that is dropped without a word must not leave a thread behind.
        self._end = weakref.finalize(self, reader.end.set)

    @property
    def outages(self) -> int:
        """How often the topics could not be read any more."""
        return self._heard.outages

    @property
    def is_up(self) -> bool:
        """Whether both topics can be read."""
        return self._heard.is_up

    @property
    def damaged_acks(self) -> int:
        """Number of acknowledgements that could not be read."""
        return self._heard.damaged_acks

    def look(self) -> None:
        """Find out what has become of what was written."""
        self._writer.poll(0)

    def take_acks(self) -> tuple[AnyAck, ...]:
        """What has arrived of the group's acknowledgements."""
        return self._heard.take_acks()

    def take_undelivered(self) -> AnyAck | None:
        """One that was written and has not arrived, or of which nobody knows."""
        return self._undelivered.popleft() if self._undelivered else None

    def plan(self) -> ControlRecord | None:
        """The plan that is valid now."""
        return self._heard.plan(time.time_ns() // 1_000_000)

    def write(self, ack: AnyAck) -> None:
        """Send an acknowledgement, without waiting for it to arrive."""

        def done(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                self._is_mute = False
            else:
                self._note(ack, error.str())

        if not self.is_up:
            # A producer that writes to a topic that is not there makes the broker create it, without its settings.
            self._undelivered.append(ack)
            return
        try:
            self._writer.produce(
                self._acks_topic,
                key=acks.encode_key(ack),
                value=acks.encode(ack),
                partition=0,
                on_delivery=done,
            )
        except (BufferError, KafkaException) as error:
            self._note(ack, str(error))

    def close(self) -> None:
        """Send what is left, and disconnect."""
        self._writer.flush(_FLUSH_S)
        self._end()
        self._thread.join(_JOIN_S)

    def _note(self, ack: AnyAck, problem: str) -> None:
        self._undelivered.append(ack)
        if not self._is_mute:
            log.warning(
                "an acknowledgement did not arrive: topic %s cannot be written (%s); allow WRITE on it, or see to its "
                "brokers; until then nothing is handed over, and what Kafka assigns is read",
                self._acks_topic,
                problem,
            )
        self._is_mute = True
