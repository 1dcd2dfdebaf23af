"""What the members of one assignor tell its leader about themselves, by the assignor's name on the wire.

Members under one name have to agree. Under Kafka's names they say what Kafka's clients say, so that these may share
the group; under all others they send the user data of this package.
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
    """See `user_data`; any bytes at all."""
    instance_id: str | None = None
    """group.instance.id, where the client shows it."""
    owned: TopicPartitions | None = None
    """Owned partitions of the protocol; None where the subscription has no such field, before version 1."""
    generation: int = NO_GENERATION
    """Generation of the protocol, from version 2 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one member speaks and is understood.

    Attributes:
        say: User data to join with; None for none.
        hear: What a member says about itself. Raises nothing, whatever the bytes.
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
    # Not every client tells its assignor of a loss, as Java does not; what it owns is empty then.
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
    """A member by the bytes of its subscription; one whose bytes cannot be read wants nothing."""
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
