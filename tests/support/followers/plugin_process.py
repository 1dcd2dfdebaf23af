"""One of the consumer `Processes`, under a plug-in: python -m tests.support.followers.plugin_process '{"who":"a", …}'.

Options: `client`, "kafka-python" or "aiokafka"; `protocol` of kafka-python; `cluster`, its name in the control records;
`silent` for a cooperative member that does not say what it still reads.

SIGTERM ends it. SIGUSR2 makes it stop itself just before its next commit.
"""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import aiokafka.errors
import kafka.errors
from aiokafka import AIOKafkaConsumer
from kafka import AsyncConsumerRebalanceListener, KafkaConsumer
from kafka.structs import MemberState, OffsetAndMetadata

from assignor.clients import aiokafka as of_aiokafka
from assignor.clients import kafka_python as of_kafka_python
from assignor.clients.aiokafka.private import generation_of, member_id_of
from assignor.strategies.catalogue import RebalanceProtocol
from tests.support.followers.follow_log import OPTIONS, note, numbers

_POLL_MS = 100
_COMMIT_EVERY_S = 0.3
_CONSUMER: Mapping[str, Any] = {
    "bootstrap_servers": OPTIONS["bootstrap"],
    "group_id": OPTIONS["group"],
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "session_timeout_ms": 3000,
    "heartbeat_interval_ms": 300,
}
_FOLLOWING: Mapping[str, Any] = {
    "cluster": OPTIONS["cluster"],
    "group_id": OPTIONS["group"],
    "control_topic": OPTIONS["control"],
    "acks_topic": OPTIONS["acks"],
    "bootstrap_servers": OPTIONS["bootstrap"],
}


class Progress:
    """What the process has processed and has yet to commit.

    Attributes:
        end: Set when the process is to end.
        next_offset: Behind what was processed, of each partition that it reads.
    """

    def __init__(self) -> None:
        self.end, self._arm = threading.Event(), threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: self.end.set())
        signal.signal(signal.SIGUSR2, lambda *_: self._arm.set())
        self.next_offset: dict[Any, int] = {}
        self._committed_s = 0.0
        self._is_over = False

    def process(self, polled: Mapping[Any, Sequence[Any]]) -> None:
        for place, records in polled.items():
            for record in records:
                note("record", place=record.partition, offset=record.offset)
                self.next_offset[place] = record.offset + 1

    def is_due(self) -> bool:
        """Whether there is something to commit, and time to; stops the process just then if it was told so."""
        now_s = time.monotonic()
        if not self.next_offset or now_s - self._committed_s < _COMMIT_EVERY_S:
            return False
        self._committed_s = now_s
        if self._arm.is_set():
            self._arm.clear()
            note("hurt")
            os.kill(os.getpid(), signal.SIGSTOP)
        return True

    @contextlib.contextmanager
    def committing(self) -> Iterator[None]:
        """Note when the commit inside began, and what becomes of it."""
        refused, begun = "", time.monotonic()
        try:
            yield
        except (kafka.errors.KafkaError, aiokafka.errors.KafkaError) as error:
            refused = type(error).__name__
        note("commit", begun=begun, accepted=not refused, refused=refused)

    def take(self, places: Collection[Any], generation: int) -> None:
        """Note what was assigned, unless nothing is read any more: a client may join once more while it ends."""
        if not self._is_over:
            note("gained", places=sorted(numbers(list(places))), generation=generation)

    def finish(self, places: Collection[Any]) -> None:
        """Nothing is read from now on; not every client tells its listener so when it ends."""
        self._is_over = True
        self.give_up("revoked", places)

    def give_up(self, what: str, places: Collection[Any]) -> None:
        for place in places:
            self.next_offset.pop(place, None)
        note(what, places=numbers(list(places)))


class KafkaPythonProcess(AsyncConsumerRebalanceListener):  # type: ignore[misc]  # the client has no types
    """A consumer of kafka-python."""

    def __init__(self) -> None:
        self._progress = Progress()
        self._following = of_kafka_python.Following(
            **_FOLLOWING, protocol=RebalanceProtocol(OPTIONS["protocol"])
        )
        self._consumer = KafkaConsumer(**_CONSUMER, partition_assignment_strategy=[self._following.assignor])
        self._following.attach(self._consumer)
        self._consumer.subscribe([OPTIONS["topic"]], listener=self)
        self._joined: Mapping[str, Any] = {}

    def run(self) -> None:
        """Until it is told to end."""
        with self._following, contextlib.closing(self._consumer):
            while not self._progress.end.is_set():
                self._following.keep_up()
                self._progress.process(self._consumer.poll(timeout_ms=_POLL_MS))
                self._look()
                if self._progress.is_due():
                    with self._progress.committing():
                        self._consumer.commit()
            with self._progress.committing():
                self._consumer.commit()
            self._progress.finish(self._consumer.assignment())

    def _look(self) -> None:
        # Those that neither gain nor lose anything in a cooperative rebalance are not called.
        group = self._consumer.group_metadata()
        joined = {
            "member": group.member_id,
            "generation": group.generation_id,
            "places": sorted(numbers(self._consumer.assignment())),
        }
        if group.state == MemberState.STABLE and joined != self._joined:
            self._joined = joined
            note("joined", **joined)

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self._progress.take(assigned, self._consumer.group_metadata().generation_id)

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        known = self._progress.next_offset
        offsets = {place: OffsetAndMetadata(known[place], "", -1) for place in revoked if place in known}
        if offsets:
            with self._progress.committing():
                await self._consumer.commit_async(offsets)
        self._progress.give_up("revoked", revoked)

    async def on_partitions_lost(self, lost: Collection[Any]) -> None:
        self._progress.give_up("lost", lost)


class AiokafkaProcess(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # the client has no types
    """A consumer of aiokafka."""

    _consumer: Any

    def __init__(self) -> None:
        self._progress = Progress()

    async def run(self) -> None:
        """Until it is told to end."""
        async with of_aiokafka.Following(**_FOLLOWING) as following:
            self._consumer = AIOKafkaConsumer(**_CONSUMER, partition_assignment_strategy=[following.assignor])
            following.attach(self._consumer)
            self._consumer.subscribe([OPTIONS["topic"]], listener=self)
            await self._consumer.start()
            try:
                while not self._progress.end.is_set():
                    self._progress.process(await self._consumer.getmany(timeout_ms=_POLL_MS))
                    if self._progress.is_due():
                        with self._progress.committing():
                            await self._consumer.commit()
                with self._progress.committing():
                    await self._consumer.commit()
                self._progress.finish(self._consumer.assignment())
            finally:
                await self._consumer.stop()

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        places, generation = sorted(numbers(list(assigned))), generation_of(self._consumer)
        self._progress.take(assigned, generation)
        note("joined", places=places, generation=generation, member=member_id_of(self._consumer))

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        if self._progress.next_offset:
            with self._progress.committing():
                await self._consumer.commit()
        self._progress.give_up("revoked", revoked)


if "silent" in OPTIONS:
    of_kafka_python.MemberAssignor._held = lambda _: {}
if OPTIONS["client"] == "aiokafka":
    asyncio.run(AiokafkaProcess().run())
else:
    KafkaPythonProcess().run()
