"""Assignors for `partition_assignment_strategy` of aiokafka: the strategies of this package, and its plans.

Following a control topic takes ten lines::

    async with Following(cluster="local", group_id="billing", bootstrap_servers=servers) as following:
        consumer = AIOKafkaConsumer(
            "invoices", group_id="billing", bootstrap_servers=servers,
            partition_assignment_strategy=[following.assignor],
        )
        following.attach(consumer)
        await consumer.start()
        async for record in consumer: ...

This client knows the eager protocol only; its members may share a group with cooperative ones of `kafka_python`,
and say so in their user data. Let the list have this one entry, but while a group changes over: for a list, the client
sends one request to join after the other, each with one more entry, and every one that is accepted makes the whole
group rebalance. Those that are refused, because others do not list that entry, it passes over.
"""

import asyncio
import inspect
import logging
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from aiokafka.errors import KafkaError

from assignor.clients.aiokafka.private import generation_of, member_id_of, request_rejoin
from assignor.clients.control import ControlState
from assignor.clients.plugin.attached import ACKS_TOPIC, CONTROL_TOPIC, Attached, now_ms
from assignor.clients.plugin.leader import Joined
from assignor.clients.plugin.membership import Membership, following, under_strategy
from assignor.protocol import acks
from assignor.protocol.acks import AnyAck

log = logging.getLogger(__name__)

_LOOK_EVERY_MS = 500
_CANCEL_AGAIN_S = 1.0


class MemberAssignor(Attached[AIOKafkaConsumer], AbstractPartitionAssignor):  # type: ignore[misc]  # the client has no types
    """The entry of `partition_assignment_strategy`, for one consumer; `attach` it before the consumer is started.

    Args:
        membership: What the member remembers.
    """

    def __init__(self, membership: Membership) -> None:
        super().__init__(membership, request_rejoin=request_rejoin, member_id_of=member_id_of)

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """The subscription to join with; part of the client's interface.

        Raises:
            NotAttachedError: The generation of what comes back would not be known.
        """
        self._attached()
        return ConsumerProtocolMemberMetadata(0, sorted(topics), self._membership.user_data({}))

    def assign(
        self, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """What the leader hands out, by member id; part of the client's interface."""
        joined = [
            Joined(member_id=member_id, topics=member.subscription, user_data=member.user_data)
            for member_id, member in members.items()
        ]
        return {
            member_id: ConsumerProtocolMemberAssignment(0, [(t, list(n)) for t, n in placed.items()], data)
            for member_id, (placed, data) in self._lead(cluster, joined).items()
        }

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Take in the leader's answer; part of the client's interface."""
        placed = {topic: tuple(numbers) for topic, numbers in assignment.assignment}
        self._take_in(placed, assignment.user_data, generation_of(self._attached()))


class StrategyAssignor(MemberAssignor):
    """A strategy of this package, without a control topic; it needs `attach` before the consumer is started.

    Args:
        name: Name of the strategy. One that weighs lag is refused: no leader knows lag.

    Raises:
        UnknownStrategyError: There is no such strategy, or it needs lag.
    """

    def __init__(self, name: str) -> None:
        super().__init__(under_strategy(name))


class Following:
    """Applies the plans of a control topic to the group of one consumer, each by one rebalance.

    Enter it where the consumer runs: it reads the control topic in a task of its own, on the same event loop. The
    topic has to be there, for this client would have the broker make it.

    Args:
        cluster: Name of the cluster in the control records.
        group_id: The consumer's group.
        control_topic: Where the plans are.
        acks_topic: Where the member says what became of them; None to say nothing.
        connection: Settings of `AIOKafkaConsumer` for the reader of the control topic: servers, security. Those
            that a producer has as well are also the settings of the writer of acknowledgements.

    Attributes:
        assignor: The entry for `partition_assignment_strategy`, of this consumer only.
    """

    def __init__(
        self,
        *,
        cluster: str,
        group_id: str,
        control_topic: str = CONTROL_TOPIC,
        acks_topic: str | None = ACKS_TOPIC,
        **connection: Any,
    ) -> None:
        self._state = ControlState(cluster=cluster, group=group_id)
        self._membership = following(self._state)
        self.assignor = MemberAssignor(self._membership)
        self._reader = AIOKafkaConsumer(control_topic, **{**connection, **_READER})
        self._acks_topic = acks_topic
        self._writer = AIOKafkaProducer(**_writer(connection)) if acks_topic else None
        self._task: asyncio.Task[None] | None = None

    def attach(self, consumer: AIOKafkaConsumer) -> None:
        """Tell the assignor its consumer, before it is started."""
        self.assignor.attach(consumer)

    async def __aenter__(self) -> "Following":
        try:
            await self._reader.start()
            if self._writer is not None:
                await self._writer.start()
        except BaseException:
            await self._close()
            raise
        self._task = asyncio.create_task(self._keep_up())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task = self._task
        try:
            while task is not None and not task.done():
                # Waited for without raising what it raises: a cancellation of the caller must not be taken for its own.
                task.cancel()
                await asyncio.wait([task], timeout=_CANCEL_AGAIN_S)
            if task is not None and not task.cancelled():
                task.result()
        finally:
            await self._close()

    async def _close(self) -> None:
        await self._reader.stop()
        if self._writer is not None:
            await self._writer.stop()

    async def _keep_up(self) -> None:
        while True:
            try:
                polled = await self._reader.getmany(timeout_ms=_LOOK_EVERY_MS)
            except KafkaError:
                log.exception("the control topic cannot be read; plans are not followed any more")
                return
            for records in polled.values():
                for record in records:
                    self._state.feed(record.key, record.value, record.headers)
            if self._membership.wants_rejoin(now_ms()):
                self.assignor.rejoin()
            while self.assignor.acks:
                await self._acknowledge(self.assignor.acks.popleft())

    async def _acknowledge(self, ack: AnyAck) -> None:
        if self._writer is None:
            return
        key, value = acks.encode_key(ack), acks.encode(ack)
        try:
            await self._writer.send_and_wait(self._acks_topic, key=key, value=value, partition=0)
        except KafkaError as error:
            # As if lost on the way; the job sees the assignment in the group's metadata all the same.
            log.warning("an acknowledgement was not sent", extra={"problem": str(error)})


_READER: Mapping[str, Any] = {
    "group_id": None,
    "auto_offset_reset": "earliest",
    # The job publishes in transactions: an aborted plan is none.
    "isolation_level": "read_committed",
}


def _writer(connection: Mapping[str, Any]) -> dict[str, Any]:
    known = inspect.signature(AIOKafkaProducer).parameters
    # Short, because the control topic is not read meanwhile.
    return {**{name: connection[name] for name in connection if name in known}, "request_timeout_ms": 5000}
