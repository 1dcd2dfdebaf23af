"""Plans and joining members for tests of what follows the control topic, in a line or two."""

from collections.abc import Mapping, Sequence

from assignor.clients.plugin.dialect import Joined
from assignor.clients.plugin.user_data import NO_EPOCH, SubscriptionData, encode_subscription_data
from assignor.protocol.control import ControlMember, ControlReasons, ControlRecord
from assignor.protocol.kafka.consumer import TopicPartitions
from assignor.protocol.kafka.sticky import Claims

FOREVER_MS = 253_402_300_799_999


def joined(
    member_id: str,
    topics: Sequence[str],
    owned: TopicPartitions | None = None,
    *,
    generation: int = 7,
    held: bool = False,
) -> Joined:
    """A member that joins with claims of a generation."""
    data = SubscriptionData(
        claims=Claims(owned=owned or {}, generation=generation), plan_epoch=NO_EPOCH, held=held
    )
    return Joined(member_id=member_id, topics=topics, user_data=encode_subscription_data(data))


def plan(
    base: Mapping[str, TopicPartitions],
    target: Mapping[str, TopicPartitions],
    *,
    epoch: int = 1,
    generation: int = 7,
    strategy: str = "lag-sticky",
    unassigned: Mapping[str, TopicPartitions] | None = None,
    cluster: str = "local",
    group: str = "g",
) -> ControlRecord:
    """A plan that never expires, for the members of `target`."""
    return ControlRecord(
        cluster=cluster,
        group=group,
        epoch=epoch,
        strategy=strategy,
        dry_run=False,
        created_at_ms=0,
        valid_until_ms=FOREVER_MS,
        base_generation=generation,
        base_protocol="lagwise",
        members={
            name: ControlMember(
                instance=None, client=name, host="/127.0.0.1", base=base.get(name, {}), target=target[name]
            )
            for name in target
        },
        moves=(),
        unassigned=unassigned or {},
        why=ControlReasons(drain_s_before=None, drain_s_after=None, drain_s_bound=None, lag=0),
    )
