"""Writes acknowledgements without waiting, and tracks those that may never be read."""

import logging
from collections import deque
from contextlib import suppress
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from assignor.clients.confluent.config import Config, with_credentials, writer_config
from assignor.protocol import acks
from assignor.protocol.acks import AnyAck

log = logging.getLogger(__name__)

_FLUSH_S = 5.0
_FATAL_AT_MOST = 3
# Where callbacks run while a fatal error is on its way to be raised, Python finds both.
_RAISED = (KafkaException, SystemError)


class AckWriter:
    """A producer that is re-created after a failure, because missing rights can be fatal to a producer.

    Attributes:
        undelivered: Acknowledgements that have not arrived, or whose fate is unknown, oldest first.
    """

    def __init__(self, config: Config, topic: str) -> None:
        self.undelivered: deque[AnyAck] = deque()
        self._config, self._topic = writer_config(config), topic
        self._producer: Producer | None = Producer(self._config)
        self._is_broken = self._is_mute = False

    def write(self, ack: AnyAck) -> None:
        """Send it."""
        try:
            if self._producer is None:
                self._producer = Producer(self._config)
            self._producer.produce(
                self._topic,
                key=acks.encode_key(ack),
                value=acks.encode(ack),
                partition=0,
                on_delivery=partial(self._delivered, ack),
            )
        except (BufferError, KafkaException) as error:
            self._fail(ack, str(error))

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in with these from now on."""
        self._config = with_credentials(self._config, username, password)
        if self._producer is not None:
            self._producer.set_sasl_credentials(username, password)

    def look(self) -> None:
        """Find out what has become of what was written."""
        if self._producer is not None:
            self._serve(self._producer)
        if self._is_broken:
            self.stop()

    def stop(self) -> None:
        """Send nothing until the next write; a producer's metadata requests could re-create its topic."""
        if self._producer is not None:
            self._producer.purge()
            self._serve(self._producer)
            self._producer = None
        self._is_broken = False

    def close(self) -> None:
        """Wait a little until all has arrived, and disconnect; a producer that cannot write is not waited for."""
        if self._producer is not None:
            with suppress(*_RAISED):
                self._producer.flush(_FLUSH_S)
        # The client's cycle of callbacks would keep the producer connected until it is collected.
        self.stop()

    def _serve(self, producer: Producer) -> None:
        """Hand out the answers that there are; a fatal error is raised in between, once, and hides none of them."""
        for _ in range(_FATAL_AT_MOST):
            try:
                producer.poll(0)
            except _RAISED as error:
                log.debug("the producer of acknowledgements has failed", extra={"problem": str(error)})
                self._is_broken = True
            else:
                return

    def _delivered(self, ack: AnyAck, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self._is_mute = False
        else:
            self._fail(ack, error.str())

    def _fail(self, ack: AnyAck, problem: str) -> None:
        self.undelivered.append(ack)
        self._is_broken = True
        if not self._is_mute:
            log.warning(
                "an acknowledgement was not delivered, so the plan is not followed: topic %s cannot be written (%s); "
                "allow WRITE on it, or check its brokers; until then the member keeps Kafka's assignment",
                self._topic,
                problem,
            )
        self._is_mute = True
