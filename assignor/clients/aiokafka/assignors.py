"""Assignors for `partition_assignment_strategy` of aiokafka: the strategies of this package, and plans.

It takes ten lines to follow a control topic::

    async with Following(cluster="local", group_id="billing", bootstrap_servers=servers) as following:
        consumer = AIOKafkaConsumer(
            "invoices", group_id="billing", bootstrap_servers=servers,
            partition_assignment_strategy=[following.assignor],
        )
        following.attach(consumer)
        await consumer.start()
        async for record in consumer: ...

This client supports only the eager protocol; its members may share a group with cooperative ones of `kafka_python`,
and state this in their user data. List only this one entry, except while a group migrates: for a longer list the
client sends one request to join after another, each with one more entry, and each accepted request makes the whole
group rebalance. It ignores refusals, which come when other members do not list the entry.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from aiokafka import AIOKafkaConsumer
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from assignor.clients.aiokafka.private import (
    before_assigning,
    generation_of,
    is_joining,
    member_id_of,
    request_rejoin,
)
from assignor.clients.plugin.attached import Attached
from assignor.clients.plugin.dialect import Joined, read_subscription
from assignor.clients.plugin.lags import Lags
from assignor.clients.plugin.membership import Membership, NotAttachedError, Past, under_strategy
from assignor.strategies.catalogue import RebalanceProtocol, facts_of
from assignor.strategies.selection import DEFAULT_ASSIGNORS


class MemberAssignor(Attached[AIOKafkaConsumer], AbstractPartitionAssignor):  # type: ignore[misc]  # the client has no types
    """The entry of `partition_assignment_strategy`, for one consumer; `attach` it before the consumer is started.

    Args:
        membership: What the member remembers.
        before_joining: Called before the member joins.
        before_leading: Awaited by a leader before it assigns.
        ask_lag: Returns the lags of the topics that the members read, or None if they are unknown.
    """

    def __init__(
        self,
        membership: Membership,
        *,
        before_joining: Callable[[], None] | None = None,
        before_leading: Callable[[Sequence[Joined]], Awaitable[None]] | None = None,
        ask_lag: Callable[[frozenset[str]], Awaitable[Lags | None]] | None = None,
    ) -> None:
        super().__init__(membership, request_rejoin=request_rejoin, member_id_of=member_id_of)
        self._before_joining, self._before_leading, self._ask_lag = before_joining, before_leading, ask_lag
        self._prepared: object = None
        self._joined: Sequence[Joined] = ()
        self._lags: Lags | None = None

    @property
    def is_joining(self) -> bool:
        """Return whether the consumer is joining its group, or has yet to."""
        return self._consumer is None or is_joining(self._consumer)

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """The subscription to join with; part of the client's interface.

        Raises:
            NotAttachedError: The generation of what comes back would not be known.
        """
        consumer = self._attached()
        if self._before_joining is not None:
            self._before_joining()
        if self._prepared is not consumer:
            before_assigning(consumer, self._prepare)
            self._prepared = consumer
        return ConsumerProtocolMemberMetadata(0, sorted(topics), self._membership.user_data({}))

    def assign(
        self, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """The leader's assignment, by member id; part of the client's interface.

        Raises:
            NotAttachedError: The client did not run the preparation that `metadata` installed.
        """
        # The client's decoded subscriptions lack the partitions that members own, and cooperative ones keep reading.
        joined = self._joined
        if {member.member_id for member in joined} != set(members):
            raise NotAttachedError(f"assignor {self.name} does not know what the members of its group own")
        return {
            member_id: ConsumerProtocolMemberAssignment(0, [(t, list(n)) for t, n in placed.items()], data)
            for member_id, (placed, data) in self._lead(
                self._counts(cluster, joined), joined, self._lags
            ).items()
        }

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Accept the leader's answer; part of the client's interface."""
        placed = {topic: tuple(numbers) for topic, numbers in assignment.assignment}
        self._take_in(placed, assignment.user_data, generation_of(self._attached()))

    async def _prepare(self, selected: str, subscriptions: Mapping[str, bytes]) -> None:
        if selected != self.name:
            return
        self._joined = [read_subscription(name, data) for name, data in subscriptions.items()]
        if self._before_leading is not None:
            await self._before_leading(self._joined)
        if self._ask_lag is not None:
            self._lags = await self._ask_lag(frozenset(t for member in self._joined for t in member.topics))


class StrategyAssignor(MemberAssignor):
    """A strategy of this package, without a control topic, under its own name on the wire.

    It needs `attach` before the consumer is started.

    Args:
        name: Name of the strategy. Strategies that read lag are refused; for `lag-aware` use `LagAwareAssignor`.
        past: `past` of another entry in the consumer's list, to keep partitions when the group changes to this one.

    Raises:
        UnknownStrategyError: There is no such strategy, or it needs lag.
    """

    def __init__(self, name: str, *, past: Past | None = None) -> None:
        super().__init__(under_strategy(name, past=past))
        self._strategy_name = name

    def under_old_name(self) -> MemberAssignor:
        """The same strategy under its former name, `lagwise-<strategy>`. List it after this one for a rolling bounce.

        It is attached with this one.
        """
        old = MemberAssignor(under_strategy(self._strategy_name, past=self.past, has_old_name=True))
        self.beside.append(old)
        return old


def default_assignors(*, past: Past | None = None) -> list[StrategyAssignor]:
    """The list of KIP-726 for one consumer, `cooperative-sticky`, then `range`; this client is eager under both."""
    past = past or Past()
    names = [name for name in DEFAULT_ASSIGNORS["kip"] if RebalanceProtocol.EAGER in facts_of(name).protocols]
    return [StrategyAssignor(name, past=past) for name in names]
