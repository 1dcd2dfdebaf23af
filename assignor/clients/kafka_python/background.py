"""The control and acks topics of one follower, in a separate thread: they cannot block or stop consuming."""

import os
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from kafka import KafkaConsumer, KafkaProducer

from assignor.clients.clock import clock_s
from assignor.clients.control import ControlState
from assignor.clients.kafka_python.making import made
from assignor.clients.kafka_python.private import topic_id_of
from assignor.clients.plugin.attached import FollowingMisusedError
from assignor.clients.plugin.trouble import (
    FIRST_PROBE_AFTER_S,
    PROBE_EVERY_S,
    RETRY_AFTER_S,
    RETRY_AT_MOST_S,
    acknowledging,
    made_again,
    not_there,
    reading,
)
from assignor.errors import AssignorError
from assignor.protocol import acks as wire
from assignor.protocol.acks import AnyAck

_POLL_MS = 200
_PROBE_WITHIN_MS = 3000
_CLOSE_WITHIN_S = 5.0

_READER: Mapping[str, Any] = {
    "group_id": None,
    # The client refuses the name of a static member without a group.
    "group_instance_id": None,
    # Plans are bytes, whatever the consumer makes of its own records.
    "key_deserializer": None,
    "value_deserializer": None,
    "auto_offset_reset": "earliest",
    # The job publishes in transactions: an aborted plan is none.
    "isolation_level": "read_committed",
    "allow_auto_create_topics": False,
    "bootstrap_timeout_ms": 5000,
    "metadata_max_age_ms": 30_000,
}

_WRITER: Mapping[str, Any] = {
    "bootstrap_timeout_ms": 5000,
    "max_block_ms": 1000,
    "request_timeout_ms": 4000,
    "delivery_timeout_ms": 5000,
    "allow_auto_create_topics": False,
    # The same acknowledgement twice is one; a producer that promises more is stuck after a broken connection.
    "enable_idempotence": False,
}


class ForkedError(AssignorError):
    """A follower that has begun in one process is used in another; make one there, with its consumer."""


class Background:
    """Feeds the state of a control topic and sends acknowledgements, from `start` to `close`.

    Each problem is logged once. The reader starts over, with growing pauses, and a failed acknowledgement counts as
    lost: the job still sees the assignment in the group's metadata.

    Args:
        state: Is fed.
        control_topic: Where the plans are.
        acks_topic: Where acknowledgements go; None to drop them.
        acks: What is to be acknowledged, oldest first; is emptied.
        connection: Settings of `KafkaConsumer`.
    """

    def __init__(
        self,
        state: ControlState,
        *,
        control_topic: str,
        acks_topic: str | None,
        acks: deque[AnyAck],
        connection: Mapping[str, Any],
    ) -> None:
        self._state, self._acks, self._acks_topic = state, acks, acks_topic
        self._control_topic, self._connection = control_topic, connection
        self._reading = reading(control_topic, state.group)
        self._acknowledging = acknowledging(acks_topic or "", state.group)
        self._reader: _Reader | None = None
        self._writer: KafkaProducer | None = None
        self._has_failed = False
        self._retry_s, self._retry_after_s = 0.0, RETRY_AFTER_S
        self._closing = threading.Event()
        self._fed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="lagwise-follow", daemon=True)
        self._process: int | None = None

    def start(self) -> None:
        """Begin, unless it has begun or ended.

        Raises:
            ForkedError: It has begun in another process, whose thread and connections these are.
        """
        if self._is_of_another_process:
            raise ForkedError(
                f"this follower of group {self._state.group} started in process {self._process}, and a fork keeps "
                "neither its thread nor its consumer's; create a Following and a consumer in each process"
            )
        if self._closing.is_set():
            return
        self._process = os.getpid()
        if not self._thread.is_alive():
            self._thread.start()

    def check_open(self) -> None:
        """Return unless it has ended.

        Raises:
            FollowingMisusedError: It has.
        """
        if self._closing.is_set():
            raise FollowingMisusedError(
                f"this follower of group {self._state.group} was closed; create a Following for each consumer"
            )

    def close(self) -> None:
        """End; waits for the thread a few seconds at most. In a process forked since then it does nothing."""
        if self._is_of_another_process:
            return
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_WITHIN_S)

    def wait_for(self, epoch: int, within_s: float) -> None:
        """Return once that epoch was read, after the timeout, or at once if the topic cannot be read."""
        with self._fed:
            self._fed.wait_for(lambda: self._state.epoch >= epoch or self._reader is None, within_s)

    @property
    def _is_of_another_process(self) -> bool:
        return self._process not in (None, os.getpid())

    def _run(self) -> None:
        while not self._closing.is_set():
            self._read()
            self._send()
        self._close_reader()
        if self._writer is not None:
            self._writer.close(_CLOSE_WITHIN_S)

    def _read(self) -> None:
        if self._reader is None and clock_s() < self._retry_s:
            self._closing.wait(_POLL_MS / 1000)
            return
        try:
            if self._reader is None:
                self._reader = _Reader(self._control_topic, self._connection)
            self._reader.read(self._state)
            if self._reader.is_sound:
                self._reading.ends()
                self._retry_after_s = RETRY_AFTER_S
        except Exception as error:  # noqa: BLE001 - whatever it is, the consumer goes on
            self._reading.begins(error)
            self._close_reader()
            self._retry_s = clock_s() + self._retry_after_s
            self._retry_after_s = min(2 * self._retry_after_s, RETRY_AT_MOST_S)
        with self._fed:
            self._fed.notify_all()

    def _close_reader(self) -> None:
        reader, self._reader = self._reader, None
        try:
            if reader is not None:
                reader.close()
        except Exception as error:  # noqa: BLE001 - as above
            self._reading.begins(error)

    def _send(self) -> None:
        while self._acks and not self._closing.is_set():
            ack = self._acks.popleft()
            if self._acks_topic is None:
                continue
            try:
                if self._writer is not None and self._has_failed:
                    self._writer.close(0)
                    self._writer = None
                if self._writer is None:
                    self._has_failed = False
                    # Not before there is something to say: it has a thread and connections of its own.
                    self._writer = made(KafkaProducer, **_writer(self._connection))
                sent = self._writer.send(
                    self._acks_topic, key=wire.encode_key(ack), value=wire.encode(ack), partition=0
                )
                sent.add_errback(self._failed)
                sent.add_callback(lambda _: self._acknowledging.ends())
            except Exception as error:  # noqa: BLE001 - as above
                self._failed(error)

    def _failed(self, error: BaseException) -> None:
        # The next acknowledgement goes by a new producer: this one may hold on to what it could not send.
        self._has_failed = True
        self._acknowledging.begins(error)


class _Reader:
    """One reading of the control topic from its beginning, until something is wrong.

    The client raises nothing where brokers are silent or a topic is gone, so it is asked for the end of the topic from
    time to time, which has an answer in time or not.
    """

    def __init__(self, topic: str, connection: Mapping[str, Any]) -> None:
        self._topic = topic
        self._consumer = made(KafkaConsumer, topic, **{**connection, **_READER})
        self._topic_id: Any = None
        self._probe_s = clock_s() + FIRST_PROBE_AFTER_S
        self.is_sound = False

    def read(self, state: ControlState) -> None:
        """Wait a moment for records and process them.

        Raises:
            ControlTopicError: The topic does not exist, or was recreated.
            KafkaError: Whatever the client says.
        """
        for records in self._consumer.poll(timeout_ms=_POLL_MS).values():
            for record in records:
                state.feed(record.key, record.value, record.headers)
        if clock_s() >= self._probe_s:
            self._probe()
            self._probe_s = clock_s() + PROBE_EVERY_S
            self.is_sound = True

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close(timeout_ms=int(_CLOSE_WITHIN_S * 1000))

    def _probe(self) -> None:
        partitions = self._consumer.assignment()
        if not partitions:
            raise not_there(self._topic)
        topic_id = topic_id_of(self._consumer, self._topic)
        self._topic_id = self._topic_id or topic_id
        ends = self._consumer.end_offsets(list(partitions), timeout_ms=_PROBE_WITHIN_MS)
        known = {p: self._consumer.position(p, timeout_ms=_PROBE_WITHIN_MS) for p in partitions}
        if topic_id != self._topic_id or any((known[p] or 0) > ends[p] for p in partitions):
            raise made_again(self._topic)


def _writer(connection: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in connection.items() if name in KafkaProducer.DEFAULT_CONFIG}
    return {**known, **_WRITER}
