"""The control and acks topics of one follower, in separate tasks: they cannot block or stop consuming."""

import asyncio
import contextlib
import inspect
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from assignor.clients.aiokafka.bounded import within
from assignor.clients.control import ControlState
from assignor.clients.plugin.attached import FollowingMisusedError
from assignor.clients.plugin.trouble import (
    FIRST_PROBE_AFTER_S,
    PROBE_EVERY_S,
    RETRY_AFTER_S,
    RETRY_AT_MOST_S,
    Trouble,
    acknowledging,
    made_again,
    not_there,
    reading,
    steering,
)
from assignor.protocol import acks as wire
from assignor.protocol.acks import AnyAck

log = logging.getLogger(__name__)

# The client has no event for a generation, nor for partitions: a look at its fields costs microseconds.
_LOOK_EVERY_S = 0.2
_ANSWER_WITHIN_S = 5.0

_READER: Mapping[str, Any] = {
    "group_id": None,
    # Plans are bytes, whatever the consumer makes of its own records.
    "key_deserializer": None,
    "value_deserializer": None,
    "auto_offset_reset": "earliest",
    # The job publishes in transactions, and an aborted plan must not be followed.
    "isolation_level": "read_committed",
}


class Background:
    """Feeds the state of a control topic and sends acknowledgements, from `start` to `close`.

    Each failure is logged once. The reader starts again after pauses that grow. An acknowledgement that cannot be sent
    is dropped: the job still sees the assignment in the group's metadata.

    Args:
        state: State of the control topic, which the reader updates.
        control_topic: Topic of the plans.
        acks_topic: Topic for acknowledgements; None to drop them.
        acks: Acknowledgements to send, oldest first; sent ones are removed.
        look: Called several times a second, also while the topic cannot be read.
        connection: Settings of `AIOKafkaConsumer`.

    Raises:
        TypeError: `AIOKafkaConsumer` does not have one of the settings.
    """

    def __init__(
        self,
        state: ControlState,
        *,
        control_topic: str,
        acks_topic: str | None,
        acks: deque[AnyAck],
        look: Callable[[], None],
        connection: Mapping[str, Any],
    ) -> None:
        inspect.signature(AIOKafkaConsumer).bind(control_topic, **connection)
        self._state, self._acks, self._acks_topic, self._look = state, acks, acks_topic, look
        self._control_topic, self._connection = control_topic, connection
        self._reading = reading(control_topic, state.group)
        self._acknowledging = acknowledging(acks_topic or "", state.group)
        self._steering = steering(control_topic, state.group)
        self._is_reading = False
        self._retry_after_s = RETRY_AFTER_S
        self._fed = asyncio.Condition()
        self._writer: Any = None
        self._tasks: list[asyncio.Task[None]] = []
        self._has_warned = False

    def start(self) -> None:
        """Start the tasks.

        Raises:
            FollowingMisusedError: They run.
        """
        if any(not task.done() for task in self._tasks):
            raise FollowingMisusedError(
                f"this follower of group {self._state.group} is entered already; create a Following for each consumer"
            )
        self._tasks = [asyncio.create_task(run()) for run in (self._read, self._steer, self._send)]

    def check_open(self) -> None:
        """Return unless the tasks were stopped.

        Raises:
            FollowingMisusedError: They were.
        """
        if self._tasks and all(task.done() for task in self._tasks):
            raise FollowingMisusedError(
                f"this follower of group {self._state.group} was left; create a Following for each consumer"
            )

    def warn_unless_started(self) -> None:
        """Log it once if the tasks were not started yet: the consumer is about to join."""
        if not (self._tasks or self._has_warned):
            self._has_warned = True
            log.warning(
                "group %s follows no plans until its Following is entered (`async with`), best before its consumer "
                "is started",
                self._state.group,
            )

    async def close(self) -> None:
        """Stop the tasks."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            # `wait` does not raise their exceptions, so a cancellation of the caller is not mistaken for theirs.
            await asyncio.wait(self._tasks)

    async def wait_for(self, epoch: int, within_s: float) -> None:
        """Return once that epoch has been read, after the timeout, or at once if the topic cannot be read."""
        async with self._fed:
            arrived = self._fed.wait_for(lambda: self._state.epoch >= epoch or not self._is_reading)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(arrived, within_s)

    async def _read(self) -> None:
        while True:
            reader = None
            try:
                reader = AIOKafkaConsumer(**{**self._connection, **_READER})
                await self._read_with(reader)
            except Exception as error:  # noqa: BLE001 - whatever it is, the consumer goes on
                self._reading.begins(error)
            finally:
                await self._is_reading_now(is_reading=False)
                if reader is not None:
                    await _quietly(reader.stop(), self._reading)
            await asyncio.sleep(self._retry_after_s)
            self._retry_after_s = min(2 * self._retry_after_s, RETRY_AT_MOST_S)

    async def _read_with(self, reader: Any) -> None:
        """Read the topic from its beginning, until something fails.

        The client raises nothing when brokers are silent or the topic is gone. So it is asked for the end of the topic
        from time to time, with a timeout.
        """
        loop = asyncio.get_running_loop()
        await within(2 * _ANSWER_WITHIN_S, self._subscribe(reader))
        # By then the first fetch is answered: a topic that may not be read may still be asked for its end.
        probe_s = loop.time() + FIRST_PROBE_AFTER_S
        while True:
            polled = await within(
                _LOOK_EVERY_S + _ANSWER_WITHIN_S, reader.getmany(timeout_ms=int(_LOOK_EVERY_S * 1000))
            )
            for records in polled.values():
                for record in records:
                    self._state.feed(record.key, record.value, record.headers)
            if loop.time() >= probe_s:
                await within(_ANSWER_WITHIN_S, self._probe(reader))
                self._reading.ends()
                # It works, so it may soon work again.
                self._retry_after_s = RETRY_AFTER_S
                probe_s = loop.time() + PROBE_EVERY_S
            await self._is_reading_now(is_reading=True)

    async def _subscribe(self, reader: Any) -> None:
        await reader.start()
        # A request for the topic by name could make the broker create it.
        if self._control_topic not in await reader.topics():
            raise not_there(self._control_topic)
        reader.subscribe([self._control_topic])
        while not reader.assignment():  # noqa: ASYNC110 - the client has no event for it
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _probe(self, reader: Any) -> None:
        ends = await reader.end_offsets(list(reader.assignment()))
        positions = {partition: await reader.position(partition) for partition in ends}
        if not ends or any(positions[partition] > ends[partition] for partition in ends):
            raise made_again(self._control_topic)

    async def _is_reading_now(self, *, is_reading: bool) -> None:
        self._is_reading = is_reading
        async with self._fed:
            self._fed.notify_all()

    async def _steer(self) -> None:
        while True:
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - as above
                self._steering.begins(error)
            else:
                self._steering.ends()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _send(self) -> None:
        try:
            while True:
                while self._acks:
                    await self._send_one(self._acks.popleft())
                await asyncio.sleep(_LOOK_EVERY_S)
        finally:
            # Here, since who closes may be cancelled before this has ended.
            await self._stop_writer()

    async def _send_one(self, ack: AnyAck) -> None:
        try:
            await within(2 * _ANSWER_WITHIN_S, self._acknowledge(ack))
        except Exception as error:  # noqa: BLE001 - as above
            self._acknowledging.begins(error)
            # The next acknowledgement gets a new producer: this one may still hold what it could not send.
            await self._stop_writer()

    async def _stop_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            await _quietly(writer.stop(), self._acknowledging)

    async def _acknowledge(self, ack: AnyAck) -> None:
        if self._acks_topic is None:
            return
        if self._writer is None:
            writer = AIOKafkaProducer(**_writer(self._connection))
            try:
                await writer.start()
            except BaseException:
                await _quietly(writer.stop(), self._acknowledging)
                raise
            self._writer = writer
        await self._writer.send_and_wait(
            self._acks_topic, key=wire.encode_key(ack), value=wire.encode(ack), partition=0
        )
        self._acknowledging.ends()


async def _quietly(stopping: Coroutine[Any, Any, None], trouble: Trouble) -> None:
    """Stop a client, also if this is cancelled meanwhile: one that is stopped half-way cannot be stopped again."""
    stopped = asyncio.create_task(_stopped(stopping, trouble))
    try:
        await asyncio.wait([stopped])
    finally:
        await asyncio.wait([stopped])


async def _stopped(stopping: Coroutine[Any, Any, None], trouble: Trouble) -> None:
    try:
        await within(_ANSWER_WITHIN_S, stopping)
    except Exception as error:  # noqa: BLE001 - as above
        trouble.begins(error)


def _writer(connection: Mapping[str, Any]) -> dict[str, Any]:
    known = inspect.signature(AIOKafkaProducer).parameters
    # Short, so that an acknowledgement that cannot be sent is dropped before the next one.
    return {**{name: connection[name] for name in connection if name in known}, "request_timeout_ms": 5000}
