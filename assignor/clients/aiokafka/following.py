"""Follows a control topic with a consumer of aiokafka."""

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from aiokafka import AIOKafkaConsumer

from assignor.clients.aiokafka.assignors import MemberAssignor, default_assignors
from assignor.clients.aiokafka.background import Background
from assignor.clients.clock import now_ms
from assignor.clients.control import ControlState
from assignor.clients.plugin.attached import ACKS_TOPIC, CATCH_UP_WITHIN_S, CONTROL_TOPIC
from assignor.clients.plugin.dialect import Joined
from assignor.clients.plugin.membership import following


class Following:
    """Applies the plans of a control topic to the group of one consumer, each by one rebalance.

    Enter it in the consumer's event loop, before the consumer is started. The control and acks topics have their own
    tasks there, so their failures do not stop the consumer. Entering does not wait.

    Args:
        cluster: Name of the cluster in the control records.
        group_id: The consumer's group.
        control_topic: Topic of the plans.
        acks_topic: Topic for the member's acknowledgements; None to send none.
        connection: Settings of `AIOKafkaConsumer` for the reader of the control topic: servers, security. The writer
            of acknowledgements uses those that a producer has, too.

    Attributes:
        assignor: The entry for `partition_assignment_strategy` of this consumer.
        assignors: A list for that setting while a group of plain consumers migrates: this entry, followed by those of
            KIP-726. This client sends a request to join for each.

    Raises:
        TypeError: `AIOKafkaConsumer` does not have one of the settings.
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
        state = ControlState(cluster=cluster, group=group_id)
        self._membership = following(state)
        self.assignor = MemberAssignor(
            self._membership,
            before_joining=self._warn_unless_entered,
            before_leading=self._catch_up,
        )
        behind = default_assignors(past=self.assignor.past)
        self.assignor.beside.extend(behind)
        self.assignors: list[MemberAssignor] = [self.assignor, *behind]
        self._background = Background(
            state,
            control_topic=control_topic,
            acks_topic=acks_topic,
            acks=self.assignor.acks,
            look=self._look,
            connection=connection,
        )

    def attach(self, consumer: AIOKafkaConsumer) -> None:
        """Give the assignors their consumer, before it is started.

        Raises:
            FollowingMisusedError: It was left.
        """
        self._background.check_open()
        self.assignor.attach(consumer)

    async def __aenter__(self) -> "Following":
        self._background.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._background.close()

    def _warn_unless_entered(self) -> None:
        # Not at `attach`, which may come before this is entered.
        self._background.warn_unless_started()

    def _look(self) -> None:
        # During a join the generation is still the old one, and the plan may be the reason for that join.
        if not self.assignor.is_joining and self._membership.wants_rejoin(now_ms()):
            self.assignor.rejoin()

    async def _catch_up(self, members: Sequence[Joined]) -> None:
        epoch = self._membership.awaits(members)
        if epoch is not None:
            await self._background.wait_for(epoch, CATCH_UP_WITHIN_S)
