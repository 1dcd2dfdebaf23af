"""Assignors for `partition_assignment_strategy` of kafka-python: the strategies of this package, and its plans.

Following a control topic takes ten lines::

    with Following(cluster="local", group_id="billing", bootstrap_servers=servers) as following:
        consumer = KafkaConsumer(
            "invoices", group_id="billing", bootstrap_servers=servers,
            partition_assignment_strategy=[following.assignor, RangePartitionAssignor],
        )
        following.attach(consumer)
        while True:
            following.keep_up()
            for records in consumer.poll(timeout_ms=500).values(): ...

A strategy without a control topic is one entry of the list, `StrategyAssignor("sticky-stream-join")`; a cooperative
one needs `attach` and, like `keep_up`, `watch` before each poll.

An assignor is eager or cooperative, and the client refuses a list that mixes the two. The name on the wire is the
same for both, because what a member still holds stands in its user data: so a group goes from `range` to a
cooperative assignor in two rolling bounces, [eager one, range], then [cooperative one].

The names begin with `lagwise`. Under a name of Kafka's the members would have to agree on Kafka's user data, and
its clients do not: kafka-python puts a version in front of that of `sticky`, Java and librdkafka do not.
"""

import logging
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.abstract import RebalanceProtocol as ClientProtocol
from kafka.errors import KafkaError, RebalanceInProgressError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from assignor.clients.control import ControlState
from assignor.clients.kafka_python.private import is_stuck, lost_within_join, request_rejoin
from assignor.clients.plugin.attached import ACKS_TOPIC, CONTROL_TOPIC, Attached, now_ms
from assignor.clients.plugin.leader import Joined
from assignor.clients.plugin.membership import Membership, following, under_strategy
from assignor.errors import InvalidOptionError
from assignor.protocol import acks
from assignor.protocol.acks import AnyAck
from assignor.protocol.kafka.consumer import TopicPartitions
from assignor.strategies.registry import RebalanceProtocol, strategy

log = logging.getLogger(__name__)

EAGER = RebalanceProtocol.EAGER
COOPERATIVE = RebalanceProtocol.COOPERATIVE

_METADATA_AGE_MS = 30_000
_CLOSE_WITHIN_S = 5.0


class MemberAssignor(Attached[KafkaConsumer], AbstractPartitionAssignor):  # type: ignore[misc]  # the client has no types
    """An entry of `partition_assignment_strategy`, for one consumer.

    Args:
        membership: What the member remembers.
        protocol: Whether the member gives up everything before it joins.
    """

    def __init__(self, membership: Membership, protocol: RebalanceProtocol) -> None:
        super().__init__(membership, request_rejoin=request_rejoin, member_id_of=_member_id_of)
        self._protocol = protocol

    def watch(self) -> None:
        """Free the consumer from a join that no poll would finish; call it before each poll.

        Raises:
            NotAttachedError: There is no consumer yet.
        """
        if is_stuck(self._attached()):
            self.rejoin()

    def supported_protocols(self) -> list[ClientProtocol]:
        """The one rebalance protocol of this entry; part of the client's interface."""
        return [ClientProtocol(self._protocol)]

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """The subscription to join with; part of the client's interface.

        Raises:
            NotAttachedError: A cooperative member does not know what it holds.
            RebalanceInProgressError: What it holds was lost in this join, which the client begins again.
        """
        if self._protocol is EAGER:
            return ConsumerProtocolSubscription(
                version=0, topics=sorted(topics), user_data=self._membership.user_data({})
            )
        if lost_within_join(self._attached()):
            raise RebalanceInProgressError("the membership was lost within a join")
        held = self._held()
        entry = ConsumerProtocolSubscription.TopicPartition
        return ConsumerProtocolSubscription(
            version=2,
            topics=sorted(topics),
            user_data=self._membership.user_data(held),
            owned_partitions=[entry(topic=topic, partitions=list(held[topic])) for topic in held],
            generation_id=self._membership.generation,
        )

    def assign(self, cluster: ClusterMetadata, members: Sequence[Any]) -> dict[str, Any]:
        """What the leader hands out, `ConsumerProtocolAssignment` by member id; part of the client's interface."""
        joined = [
            Joined(
                member_id=member.member_id,
                topics=member.metadata.topics,
                user_data=member.metadata.user_data,
                instance_id=member.group_instance_id,
            )
            for member in members
        ]
        return {
            member_id: ConsumerProtocolAssignment(
                version=0, assigned_partitions=[(t, list(n)) for t, n in placed.items()], user_data=data
            )
            for member_id, (placed, data) in self._lead(cluster, joined).items()
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Take in the leader's answer; part of the client's interface."""
        placed = {topic: tuple(numbers) for topic, numbers in assignment.assigned_partitions}
        self._take_in(placed, assignment.user_data, generation)

    def _held(self) -> TopicPartitions:
        by_topic: dict[str, list[int]] = {}
        for topic, number in sorted(self._attached().assignment()):
            by_topic.setdefault(topic, []).append(number)
        return {topic: tuple(numbers) for topic, numbers in by_topic.items()}


class StrategyAssignor(MemberAssignor):
    """A strategy of this package, without a control topic.

    Args:
        name: Name of the strategy. One that weighs lag is refused: no leader knows lag.
        protocol: `EAGER`, or `COOPERATIVE` where the strategy allows it.

    Raises:
        UnknownStrategyError: There is no such strategy, or it needs lag.
        InvalidOptionError: The strategy cannot be handed over in two steps.
    """

    def __init__(self, name: str, protocol: RebalanceProtocol = EAGER) -> None:
        super().__init__(under_strategy(name), protocol)
        if protocol not in strategy(name).protocols:
            raise InvalidOptionError(name, "protocol", "must be EAGER for this strategy")


class Following:
    """Applies the plans of a control topic to the group of one consumer.

    One thread calls `keep_up` and polls the consumer. The group follows while each member lists the assignor, and
    each plan is applied by a rebalance, one for eager members and two for cooperative ones.

    Args:
        cluster: Name of the cluster in the control records.
        group_id: The consumer's group.
        protocol: `EAGER` or `COOPERATIVE`.
        control_topic: Where the plans are.
        acks_topic: Where the member says what became of them; None to say nothing.
        connection: Settings of `KafkaConsumer` for the reader of the control topic: servers, security, client id.
            Those that a producer has as well are also the settings of the writer of acknowledgements.

    Attributes:
        assignor: The entry for `partition_assignment_strategy`, of this consumer only.
    """

    def __init__(
        self,
        *,
        cluster: str,
        group_id: str,
        protocol: RebalanceProtocol = EAGER,
        control_topic: str = CONTROL_TOPIC,
        acks_topic: str | None = ACKS_TOPIC,
        **connection: Any,
    ) -> None:
        self._state = ControlState(cluster=cluster, group=group_id)
        self._membership = following(self._state)
        self.assignor = MemberAssignor(self._membership, protocol)
        self._reader = KafkaConsumer(
            control_topic, **{**connection, **_READER, "metadata_max_age_ms": _METADATA_AGE_MS}
        )
        self._acks_topic = acks_topic
        self._connection = connection
        self._writer: KafkaProducer | None = None

    def attach(self, consumer: KafkaConsumer) -> None:
        """Tell the assignor its consumer, before the first poll."""
        self.assignor.attach(consumer)

    def keep_up(self) -> None:
        """Read on in the control topic and rejoin the group if there is reason to; call it before each poll.

        Does not wait, but to connect for its first acknowledgement, and a second for each where the acks topic is
        missing. A plan is applied as late as this is called, so keep polls short, half a second or so.

        Raises:
            NotAttachedError: There is no consumer yet.
        """
        for records in self._reader.poll(timeout_ms=0).values():
            for record in records:
                self._state.feed(record.key, record.value, record.headers)
        self.assignor.watch()
        if self._membership.wants_rejoin(now_ms()):
            self.assignor.rejoin()
        while self.assignor.acks:
            self._acknowledge(self.assignor.acks.popleft())

    def close(self) -> None:
        """Close the reader of the control topic; the consumer is closed by whoever made it."""
        self._reader.close()
        if self._writer is not None:
            self._writer.close(_CLOSE_WITHIN_S)

    def _acknowledge(self, ack: AnyAck) -> None:
        if self._acks_topic is None:
            return
        try:
            if self._writer is None:
                # Not before there is something to say: it has a thread and connections of its own.
                self._writer = KafkaProducer(**_writer(self._connection))
            sent = self._writer.send(
                self._acks_topic, key=acks.encode_key(ack), value=acks.encode(ack), partition=0
            )
        except KafkaError as error:
            _not_sent(error)
        else:
            sent.add_errback(_not_sent)

    def __enter__(self) -> "Following":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_READER: Mapping[str, Any] = {
    "group_id": None,
    "auto_offset_reset": "earliest",
    # The job publishes in transactions: an aborted plan is none.
    "isolation_level": "read_committed",
    "allow_auto_create_topics": False,
}

_WRITER: Mapping[str, Any] = {
    "bootstrap_timeout_ms": 5000,
    "max_block_ms": 1000,
    "request_timeout_ms": 4000,
    "delivery_timeout_ms": 5000,
    "allow_auto_create_topics": False,
}


def _writer(connection: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in connection.items() if name in KafkaProducer.DEFAULT_CONFIG}
    return {**known, **_WRITER}


def _not_sent(error: BaseException) -> None:
    # As if lost on the way; the job sees the assignment in the group's metadata all the same.
    log.warning("an acknowledgement was not sent", extra={"problem": str(error)})


def _member_id_of(consumer: KafkaConsumer) -> str:
    return str(consumer.group_metadata().member_id)
