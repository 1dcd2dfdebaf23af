"""Assignors for `partition_assignment_strategy` of kafka-python: the strategies of this package, and its plans.

Following a control topic takes ten lines::

    with Following(cluster="local", group_id="billing", bootstrap_servers=servers) as following:
        consumer = KafkaConsumer(
            "invoices", group_id="billing", bootstrap_servers=servers,
            partition_assignment_strategy=following.assignors,
        )
        following.attach(consumer)
        while True:
            following.keep_up()
            for records in consumer.poll(timeout_ms=500).values(): ...

A strategy without a control topic is one entry of the list, `StrategyAssignor("sticky-stream-join")`; a cooperative
one needs `attach` and, like `keep_up`, `watch` before each poll. A list that is nobody's choice is
`default_assignors()`, that of KIP-726; attach its first entry.

Where the list has a cooperative entry, the protocol is that of the assignor which the group selects (KIP-726): one
rolling bounce takes a group from [range] to [cooperative one, range]. A list of eager entries stays eager. The name
on the wire is the same for both kinds of an entry, because its user data shows what a member still holds.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka import KafkaConsumer
from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.abstract import RebalanceProtocol as ClientProtocol
from kafka.errors import RebalanceInProgressError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from assignor.clients.kafka_python.private import (
    follow_selection,
    is_cooperative,
    is_stuck,
    keep_in_next_join,
    lost_within_join,
    request_rejoin,
)
from assignor.clients.plugin.attached import Attached
from assignor.clients.plugin.dialect import Joined
from assignor.clients.plugin.lags import Lags
from assignor.clients.plugin.membership import Membership, Past, under_strategy
from assignor.errors import InvalidOptionError
from assignor.protocol.kafka.consumer import NO_GENERATION, TopicPartitions
from assignor.strategies import names
from assignor.strategies.catalogue import RebalanceProtocol, facts_of
from assignor.strategies.selection import DEFAULT_ASSIGNORS

EAGER = RebalanceProtocol.EAGER
COOPERATIVE = RebalanceProtocol.COOPERATIVE

_COOPERATIVE_BY_KIP = {names.COOPERATIVE_STICKY, names.CONSTRAINED_COOPERATIVE_STICKY}
"""Strategies whose assignors have both protocols (KIP-429, KIP-615)."""


class MemberAssignor(Attached[KafkaConsumer], AbstractPartitionAssignor):  # type: ignore[misc]  # the client has no types
    """An entry of `partition_assignment_strategy`, for one consumer.

    Args:
        membership: What the member remembers.
        protocol: `EAGER`: the member gives up everything before it joins. `COOPERATIVE`: the entry has both protocols,
            and the member keeps its partitions while it joins, once the group has selected such an entry.
        before_leading: Called by a leader before it assigns; may wait a little.
        ask_lag: Asks for the lag of each topic's first N partitions; None where it is unknown.
    """

    def __init__(
        self,
        membership: Membership,
        protocol: RebalanceProtocol,
        *,
        before_leading: Callable[[Sequence[Joined]], None] | None = None,
        ask_lag: Callable[[Mapping[str, int]], Lags | None] | None = None,
    ) -> None:
        super().__init__(membership, request_rejoin=request_rejoin, member_id_of=_member_id_of)
        self._protocol = protocol
        self._before_leading, self._ask_lag = before_leading, ask_lag

    def attach(self, consumer: KafkaConsumer) -> None:
        """Tell the assignor its consumer, before that joins its group."""
        super().attach(consumer)
        if self._protocol is COOPERATIVE:
            follow_selection(consumer)

    def watch(self) -> None:
        """Free the consumer from a join that no poll would finish; call it before each poll.

        Raises:
            NotAttachedError: There is no consumer yet.
        """
        if is_stuck(self._attached()):
            self.rejoin()

    def supported_protocols(self) -> list[ClientProtocol]:
        """The rebalance protocols of this entry, the preferred one first; part of the client's interface."""
        both = [ClientProtocol.COOPERATIVE, ClientProtocol.EAGER]
        return both if self._protocol is COOPERATIVE else [ClientProtocol.EAGER]

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
        consumer = self._attached()
        keeps = is_cooperative(consumer)
        if keeps and lost_within_join(consumer):
            raise RebalanceInProgressError("the membership was lost within a join")
        held = self._held() if keeps else {}
        entry = ConsumerProtocolSubscription.TopicPartition
        return ConsumerProtocolSubscription(
            version=2,
            topics=sorted(topics),
            user_data=self._membership.user_data(held),
            owned_partitions=[entry(topic=topic, partitions=list(held[topic])) for topic in held],
            generation_id=self.past.generation,
        )

    def assign(self, cluster: ClusterMetadata, members: Sequence[Any]) -> dict[str, Any]:
        """Return the leader's assignment, `ConsumerProtocolAssignment` by member id; part of the client's interface."""
        joined = [_joined(member) for member in members]
        if self._before_leading is not None:
            self._before_leading(joined)
        counts = self._counts(cluster, joined)
        lags = self._ask_lag(counts) if self._ask_lag is not None else None
        return {
            member_id: ConsumerProtocolAssignment(
                version=0, assigned_partitions=[(t, list(n)) for t, n in placed.items()], user_data=data
            )
            for member_id, (placed, data) in self._lead(counts, joined, lags).items()
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Take in the leader's answer; part of the client's interface."""
        placed = {topic: tuple(numbers) for topic, numbers in assignment.assigned_partitions}
        self._take_in(placed, assignment.user_data, generation)
        if self._protocol is COOPERATIVE:
            keep_in_next_join(self._attached())

    def _held(self) -> TopicPartitions:
        by_topic: dict[str, list[int]] = {}
        for topic, number in sorted(self._attached().assignment()):
            by_topic.setdefault(topic, []).append(number)
        return {topic: tuple(numbers) for topic, numbers in by_topic.items()}


class StrategyAssignor(MemberAssignor):
    """A strategy of this package, without a control topic, under its own name on the wire.

    Args:
        name: Name of the strategy. Those that weigh lag are refused; `lag-aware` is `LagAwareAssignor`.
        protocol: `EAGER`, or `COOPERATIVE` where the strategy allows it. None for what its proposal says:
            `COOPERATIVE` for the cooperative sticky ones, `EAGER` for all others.
        past: Of another entry of the same consumer's list, to keep partitions when the group goes over to this one.

    Raises:
        UnknownStrategyError: There is no such strategy, or it needs lag.
        InvalidOptionError: The strategy cannot be handed over in two steps.
    """

    def __init__(
        self, name: str, protocol: RebalanceProtocol | None = None, *, past: Past | None = None
    ) -> None:
        if protocol is None:
            protocol = COOPERATIVE if name in _COOPERATIVE_BY_KIP else EAGER
        super().__init__(under_strategy(name, past=past), protocol)
        if protocol not in facts_of(name).protocols:
            raise InvalidOptionError(name, "protocol", "must be EAGER for this strategy")
        self._strategy_name = name

    def under_old_name(self) -> MemberAssignor:
        """Return the entry under its old name, `lagwise-<strategy>`, to list after this one in a rolling bounce.

        It is attached with this one.
        """
        membership = under_strategy(self._strategy_name, past=self.past, has_old_name=True)
        old = MemberAssignor(membership, self._protocol)
        self.beside.append(old)
        return old


def default_assignors(
    protocol: RebalanceProtocol = COOPERATIVE, *, past: Past | None = None
) -> list[StrategyAssignor]:
    """Return the list of KIP-726 for one consumer, `cooperative-sticky`, then `range`; attach only the first.

    The member is eager under `range`, and cooperative once the group selects `cooperative-sticky`, which it does when
    every member lists it.

    Args:
        protocol: `EAGER` keeps the consumer eager under both.
        past: Of another entry of the same consumer's list.
    """
    past = past or Past()
    listed = [facts_of(name) for name in DEFAULT_ASSIGNORS["kip"]]
    first, *others = [
        StrategyAssignor(one.name, protocol if protocol in one.protocols else EAGER, past=past)
        for one in listed
    ]
    first.beside.extend(others)
    return [first, *others]


def _joined(member: Any) -> Joined:
    data = member.metadata
    owned = getattr(data, "owned_partitions", None) if data.version > 0 else None
    return Joined(
        member_id=member.member_id,
        topics=data.topics,
        user_data=data.user_data,
        instance_id=member.group_instance_id,
        owned=None if owned is None else {entry.topic: tuple(entry.partitions) for entry in owned},
        generation=data.generation_id if data.version > 1 else NO_GENERATION,
    )


def _member_id_of(consumer: KafkaConsumer) -> str:
    return str(consumer.group_metadata().member_id)
