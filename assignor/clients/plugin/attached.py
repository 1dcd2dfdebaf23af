"""Base of the entries of `partition_assignment_strategy` for all clients. An entry belongs to one consumer.

It connects a client, which has a clock and a consumer, to a `Membership`, which has neither.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from assignor.clients.clock import now_ms
from assignor.clients.plugin.dialect import Joined
from assignor.clients.plugin.lags import Lags
from assignor.clients.plugin.membership import Answer, Membership, NotAttachedError, Past
from assignor.errors import AssignorError
from assignor.protocol.acks import AnyAck
from assignor.protocol.kafka.consumer import TopicPartitions

ConsumerT = TypeVar("ConsumerT")

CONTROL_TOPIC = "lagwise.assignments"
ACKS_TOPIC = "lagwise.acks"
CATCH_UP_WITHIN_S = 1.0
"""Time that a leader waits for a plan that another member has already read."""


class FollowingMisusedError(AssignorError):
    """A `Following` is used before it is entered, twice, or after its end; create one for each consumer."""


class Attached(Generic[ConsumerT]):
    """An entry and its consumer.

    Args:
        membership: What the member remembers.
        request_rejoin: Makes a consumer join its group again.
        member_id_of: Member id of a consumer in its group.

    Attributes:
        acks: Acknowledgements still to be sent, oldest first.
        beside: Other entries of the same consumer; they are attached with this one.
    """

    def __init__(
        self,
        membership: Membership,
        *,
        request_rejoin: Callable[[ConsumerT], None],
        member_id_of: Callable[[ConsumerT], str],
    ) -> None:
        self._membership = membership
        self._request_rejoin = request_rejoin
        self._member_id_of = member_id_of
        self._consumer: ConsumerT | None = None
        # Filled where the client joins, emptied where the user polls; for kafka-python these are two threads.
        self.acks: deque[AnyAck] = deque()
        self.beside: list[Attached[ConsumerT]] = []

    @property
    def name(self) -> str:
        """Name on the wire."""
        return self._membership.name

    @property
    def past(self) -> Past:
        """Return what the member owned; shared with the other entries of its list."""
        return self._membership.past

    def attach(self, consumer: ConsumerT) -> None:
        """Give the assignor its consumer, before the consumer joins its group."""
        self._consumer = consumer
        for entry in self.beside:
            entry.attach(consumer)

    def rejoin(self) -> None:
        """Make the group rebalance.

        Raises:
            NotAttachedError: There is no consumer yet.
        """
        self._request_rejoin(self._attached())

    def _counts(self, cluster: Any, members: Sequence[Joined]) -> dict[str, int]:
        """Partitions of every subscribed topic; `cluster` is the client's metadata."""
        subscribed = {topic for member in members for topic in member.topics}
        return {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in sorted(subscribed)}

    def _lead(
        self, counts: Mapping[str, int], members: Sequence[Joined], lags: Lags | None = None
    ) -> dict[str, Answer]:
        """The leader's assignment, by member id."""
        return self._membership.lead(counts=counts, members=members, now_ms=now_ms(), lags=lags)

    def _take_in(self, placed: TopicPartitions, user_data: bytes | None, generation: int) -> None:
        """Accept the leader's answer."""
        # Without a consumer nothing follows a plan, so there is nothing to acknowledge.
        member = "" if self._consumer is None else self._member_id_of(self._consumer)
        ack = self._membership.assigned(placed, user_data, generation, member=member, now_ms=now_ms())
        if ack is not None:
            self.acks.append(ack)

    def _attached(self) -> ConsumerT:
        if self._consumer is None:
            raise NotAttachedError(f"assignor {self.name} has no consumer: call attach(consumer)")
        return self._consumer
