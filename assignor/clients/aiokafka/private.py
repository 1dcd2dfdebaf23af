"""Functions that aiokafka lacks: rejoining the group, waiting before assigning, and the member's identity.

Everything here leans on private parts of aiokafka 0.14.0, so the version is pinned, and a test of this module fails
when a release changes them.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.group_coordinator import NoGroupCoordinator


def request_rejoin(consumer: AIOKafkaConsumer) -> None:
    """Make the member join its group again; the consumer has been started."""
    consumer._coordinator.request_rejoin()


def is_joining(consumer: AIOKafkaConsumer) -> bool:
    """Return whether the member joins its group, or is about to; a member that was never started is about to.

    A request that comes before the leader's answer is remembered beyond it, and makes the whole group rebalance again.
    """
    coordinator = consumer._coordinator
    if coordinator is None or isinstance(coordinator, NoGroupCoordinator):
        return True
    # The second lasts until the client asks for the leader's answer, the first from before that to its end.
    return bool(coordinator._performed_join_prepare or coordinator._rejoin_needed_fut.done())


def generation_of(consumer: AIOKafkaConsumer) -> int:
    """Generation of the group that the consumer joined last; it has been started."""
    return int(consumer._coordinator.generation)


def member_id_of(consumer: AIOKafkaConsumer) -> str:
    """Member id in that generation."""
    return str(consumer._coordinator.member_id)


def before_assigning(
    consumer: AIOKafkaConsumer, prepare: Callable[[str, Mapping[str, bytes]], Awaitable[None]]
) -> None:
    """Have a leader wait for that before it assigns; the consumer is joining its group.

    Assignors are called between two awaits, see only what version 0 of the subscription had, and cannot wait.

    Args:
        consumer: Has been started.
        prepare: Takes the name of the selected assignor, and each member's subscription by member id.
    """
    coordinator = consumer._coordinator
    perform = coordinator._perform_assignment

    async def prepared(response: Any) -> Any:
        await prepare(response.group_protocol, {member[0]: member[-1] for member in response.members})
        return await perform(response)

    coordinator._perform_assignment = prepared
