"""The control topic and the acks topic, as a follower reads and writes them: without waiting, and without failing."""

import threading
import weakref

from assignor.clients.clock import now_ms
from assignor.clients.confluent.config import Config
from assignor.clients.confluent.heard import Heard
from assignor.clients.confluent.reader import Names, TopicsReader
from assignor.clients.confluent.writer import AckWriter
from assignor.protocol.acks import AnyAck
from assignor.protocol.control import ControlRecord

_JOIN_S = 2.0


class FollowTopics:
    """A follower's access to lagwise's topics; it never blocks: unusable topics deliver nothing."""

    def __init__(self, config: Config, *, control_topic: str, acks_topic: str, cluster: str | None) -> None:
        """Begin to read.

        Raises:
            KafkaException: The client refuses a property.
        """
        self._writer = AckWriter(config, acks_topic)
        self._heard = Heard()
        names = Names(control=control_topic, acks=acks_topic, cluster=cluster, group=str(config["group.id"]))
        self._reader = TopicsReader(config, names, self._heard)
        self._thread: threading.Thread = self._reader.start()
        # A follower that is dropped without a word must not leave a thread behind.
        self._end = weakref.finalize(self, self._reader.end.set)

    @property
    def outages(self) -> int:
        """Return the number of times that the topics became unreadable."""
        return self._heard.outages

    @property
    def is_up(self) -> bool:
        """Return whether both topics can be read."""
        return self._heard.is_up

    def look(self) -> None:
        """Find out what has become of what was written."""
        self._writer.look()
        if not self.is_up:
            self._writer.stop()

    def take_acks(self) -> tuple[AnyAck, ...]:
        """Return the group's acknowledgements that have arrived."""
        return self._heard.take_acks()

    def take_undelivered(self) -> AnyAck | None:
        """One that was written and has not arrived, or whose fate is unknown."""
        undelivered = self._writer.undelivered
        return undelivered.popleft() if undelivered else None

    def plan(self) -> ControlRecord | None:
        """The plan that is valid now."""
        return self._heard.plan(now_ms())

    def write(self, ack: AnyAck) -> None:
        """Send an acknowledgement, without waiting for it to arrive."""
        if self.is_up:
            self._writer.write(ack)
        else:
            self._writer.undelivered.append(ack)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in with these from now on."""
        self._writer.set_sasl_credentials(username, password)
        self._reader.set_sasl_credentials(username, password)

    def close(self) -> None:
        """Send what is left, and disconnect."""
        self._writer.close()
        self._end()
        self._thread.join(_JOIN_S)
