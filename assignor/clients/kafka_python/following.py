"""Follows a control topic with a consumer of kafka-python."""

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from kafka import KafkaConsumer

from assignor.clients.clock import now_ms
from assignor.clients.control import ControlState
from assignor.clients.kafka_python.assignors import EAGER, MemberAssignor, default_assignors
from assignor.clients.kafka_python.background import Background
from assignor.clients.kafka_python.making import check
from assignor.clients.plugin.attached import ACKS_TOPIC, CATCH_UP_WITHIN_S, CONTROL_TOPIC
from assignor.clients.plugin.dialect import Joined
from assignor.clients.plugin.membership import following
from assignor.strategies.catalogue import RebalanceProtocol


class Following:
    """Applies the plans of a control topic to the group of one consumer.

    One thread calls `keep_up` and polls the consumer; the control and acks topics have their own thread, so
    their failures do not stop the consumer. The group follows while each member lists the assignor, and each
    plan is applied by a rebalance, one for eager members and two for cooperative ones.

    Args:
        cluster: Name of the cluster in the control records.
        group_id: The consumer's group.
        protocol: `EAGER` or `COOPERATIVE`, see `MemberAssignor`.
        control_topic: Where the plans are.
        acks_topic: Where the member says what became of them; None to say nothing.
        connection: Settings of `KafkaConsumer` for the reader of the control topic: servers, security, client id.
            Those that a producer has as well are also the settings of the writer of acknowledgements.

    Attributes:
        assignor: The entry for `partition_assignment_strategy`, of this consumer only.
        assignors: A whole list for it: that entry, and behind it those of KIP-726, by which a group of plain consumers
            comes over.

    Raises:
        KafkaConfigurationError: A setting that `KafkaConsumer` does not have.
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
        check(connection)
        state = ControlState(cluster=cluster, group=group_id)
        self._membership = following(state)
        self.assignor = MemberAssignor(self._membership, protocol, before_leading=self._catch_up)
        behind = default_assignors(protocol, past=self.assignor.past)
        self.assignor.beside.extend(behind)
        self.assignors: list[MemberAssignor] = [self.assignor, *behind]
        self._background = Background(
            state,
            control_topic=control_topic,
            acks_topic=acks_topic,
            acks=self.assignor.acks,
            connection=connection,
        )

    def attach(self, consumer: KafkaConsumer) -> None:
        """Tell the assignors their consumer, before the first poll, and begin to read the control topic.

        Raises:
            ForkedError: It was attached in another process.
            FollowingMisusedError: It was closed.
        """
        self._background.check_open()
        self._background.start()
        self.assignor.attach(consumer)

    def keep_up(self) -> None:
        """Rejoin the group if there is reason to; call it before each poll. Does not wait.

        A plan is applied only when this is called, so keep polls short, about half a second.

        Raises:
            NotAttachedError: There is no consumer yet.
            ForkedError: It was attached in another process.
        """
        self._background.start()
        self.assignor.watch()
        if self._membership.wants_rejoin(now_ms()):
            self.assignor.rejoin()

    def close(self) -> None:
        """End the thread of the control topic; the caller closes the consumer."""
        self._background.close()

    def _catch_up(self, members: Sequence[Joined]) -> None:
        epoch = self._membership.awaits(members)
        if epoch is not None:
            self._background.wait_for(epoch, CATCH_UP_WITHIN_S)

    def __enter__(self) -> "Following":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
