"""The user data that members send to their leader, by the assignor's name on the wire.

Members under one name must agree on a format. Under Kafka's names they send the same as Kafka's clients, so that both
can share a group; under all others they send the user data of this package.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from assignor.clients.plugin.user_data import (
    NO_EPOCH,
    UNKNOWN,
    SubscriptionData,
    encode_subscription_data,
    subscription_data_of,
)
from assignor.errors import DecodeError
from assignor.protocol.kafka.consumer import NO_GENERATION, Subscription, TopicPartitions, decode_subscription
from assignor.protocol.kafka.reader import Reader
from assignor.protocol.kafka.sticky import (
    COOPERATIVE_STICKY,
    STICKY,
    Claims,
    claims_of,
    encode_cooperative_sticky_user_data,
    encode_sticky_user_data,
)
from assignor.strategies import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A member as the coordinator shows it to the leader."""

    member_id: str
    topics: Sequence[str]
    """Subscribed topics."""
    user_data: bytes | None
    """User data of its subscription, which may be any bytes."""
    instance_id: str | None = None
    """group.instance.id, if the client shows it."""
    owned: TopicPartitions | None = None
    """Owned partitions of the protocol; None if the subscription lacks the field, before version 1."""
    generation: int = NO_GENERATION
    """Generation of the protocol, from version 2 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Writes and reads the members' user data.

    Attributes:
        say: Returns the user data to join with; None for none.
        hear: Returns what a member says about itself. Raises nothing, whatever the bytes.
        answers: Whether the leader sends `AssignmentData`.
    """

    say: Callable[[SubscriptionData], bytes | None]
    hear: Callable[[Joined], SubscriptionData]
    answers: bool


def _hear_ours(member: Joined) -> SubscriptionData:
    data = subscription_data_of(member.user_data)
    if data is UNKNOWN:
        return _by_protocol(member)
    if member.owned is None:
        return data
    # Some clients, such as Java's, do not tell their assignor of a loss; the protocol then shows no owned partitions.
    owned = member.owned or data.claims.owned
    claims = Claims(owned=owned, generation=data.claims.generation)
    return replace(data, claims=claims, held=bool(member.owned))


def _hear_sticky(member: Joined) -> SubscriptionData:
    claims = claims_of(STICKY, Subscription(topics=(), user_data=member.user_data))
    return SubscriptionData(claims=claims, plan_epoch=NO_EPOCH, held=False)


def _by_protocol(member: Joined) -> SubscriptionData:
    subscription = Subscription(
        topics=(), user_data=member.user_data, owned=member.owned or {}, generation=member.generation
    )
    claims = claims_of(COOPERATIVE_STICKY, subscription)
    return SubscriptionData(claims=claims, plan_epoch=NO_EPOCH, held=bool(member.owned))


def _say_sticky(data: SubscriptionData) -> bytes | None:
    return None if data.claims.generation == NO_GENERATION else encode_sticky_user_data(data.claims)


def _say_cooperative_sticky(data: SubscriptionData) -> bytes:
    return encode_cooperative_sticky_user_data(data.claims.generation)


def _say_nothing(_: SubscriptionData) -> None:
    return None


OURS = Dialect(say=encode_subscription_data, hear=_hear_ours, answers=True)
_SILENT = Dialect(say=_say_nothing, hear=_by_protocol, answers=False)
_OF_KAFKA = {
    STICKY: Dialect(say=_say_sticky, hear=_hear_sticky, answers=False),
    COOPERATIVE_STICKY: Dialect(say=_say_cooperative_sticky, hear=_by_protocol, answers=False),
    names.RANGE: _SILENT,
    names.ROUNDROBIN: _SILENT,
}


def dialect(name: str) -> Dialect:
    """The dialect under a name on the wire."""
    return _OF_KAFKA.get(name, OURS)


def read_subscription(member_id: str, subscription: bytes) -> Joined:
    """The member with this subscription. If the bytes cannot be read, it subscribes to nothing."""
    try:
        read = decode_subscription(subscription)
    except DecodeError:
        return Joined(member_id=member_id, topics=(), user_data=None)
    has_owned = Reader(subscription).int16("version") > 0
    return Joined(
        member_id=member_id,
        topics=read.topics,
        user_data=read.user_data,
        owned=read.owned if has_owned else None,
        generation=read.generation,
    )
