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

    Enter it where the consumer runs: the control and acks topics have tasks of their own, on the same event loop, so
    whatever becomes of them, the consumer goes on. Nothing is waited for when it is entered.

    Args:
        cluster: Name of the cluster in the control records.
        group_id: The consumer's group.
        control_topic: Where the plans are.
        acks_topic: Where the member says what became of them; None to say nothing.
        connection: Settings of `AIOKafkaConsumer` for the reader of the control topic: servers, security. Those
            that a producer has as well are also the settings of the writer of acknowledgements.

    Attributes:
        assignor: The entry for `partition_assignment_strategy`, of this consumer only.
        assignors: A whole list for it while a group of plain consumers comes over: that entry, and behind it those of
            KIP-726. This client sends a request to join for each.

    Raises:
        TypeError: A setting that `AIOKafkaConsumer` does not have.
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
        self.assignor = MemberAssignor(self._membership, before_leading=self._catch_up)
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
        """Tell the assignors their consumer, before it is started."""
        self.assignor.attach(consumer)

    async def __aenter__(self) -> "Following":
        self._background.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._background.close()

    def _look(self) -> None:
        # Under a join the generation is still the old one, and the plan may be the very reason for that join.
        if not self.assignor.is_joining and self._membership.wants_rejoin(now_ms()):
            self.assignor.rejoin()

    async def _catch_up(self, members: Sequence[Joined]) -> None:
        epoch = self._membership.awaits(members)
        if epoch is not None:
            await self._background.wait_for(epoch, CATCH_UP_WITHIN_S)
