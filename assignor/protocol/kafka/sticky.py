"""What members of sticky groups claim to own: in user data, in the protocol's own fields, or both.

    sticky, Java and librdkafka      [topic string | partitions [int32]] | [v1 generation int32]
    sticky, kafka-python             int16 version | the same
    cooperative-sticky, Java         generation int32

The first layout names no version, so the versions are told apart by what is left at the end, which is why
bytes that remain are an error here. Source: KIP-341; `StickyAssignor` and `CooperativeStickyAssignor` of
Kafka; `StickyAssignorUserData` of kafka-python.
"""

from dataclasses import dataclass

from assignor.errors import DecodeError
from assignor.protocol.kafka.consumer import (
    NO_GENERATION,
    Subscription,
    TopicPartitions,
    read_topic_partitions,
    write_topic_partitions,
)
from assignor.protocol.kafka.reader import Reader
from assignor.protocol.kafka.writer import Writer

STICKY = "sticky"
COOPERATIVE_STICKY = "cooperative-sticky"

_GENERATION_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Partitions that a member says it owns. Not checked: any client may send it."""

    owned: TopicPartitions
    generation: int
    """Generation in which it owned them, -1 when not reported."""


def claims_of(protocol: str | None, subscription: Subscription) -> Claims:
    """The claims of a member whose group uses the assignor `protocol`.

    "sticky" goes by user data alone, for eager members have revoked everything when they join.
    "cooperative-sticky" goes by the owned partitions of the protocol, with the generation of the protocol
    or else of the user data. Any other assignor goes by the fields of the protocol. User data that cannot be
    read is no claim, as it is for Kafka, and raises nothing.
    """
    if protocol == STICKY:
        return _claims_in_user_data(subscription.user_data)
    generation = subscription.generation
    if protocol == COOPERATIVE_STICKY and generation == NO_GENERATION:
        generation = _generation_in_user_data(subscription.user_data)
    return Claims(owned=subscription.owned, generation=generation)


def decode_sticky_user_data(data: bytes) -> Claims:
    """Claims in user data of "sticky", in any of its layouts; generation -1 where version 0 has none.

    Raises:
        DecodeError: No layout takes the bytes from the first to the last; the error is that of the plain layout.
    """
    try:
        return _read_claims(Reader(data))
    except DecodeError as error:
        try:
            return _read_versioned_claims(Reader(data))
        except DecodeError:
            raise error from None


def encode_sticky_user_data(claims: Claims) -> bytes:
    """User data of "sticky", version 1, as Java clients and librdkafka write it."""
    writer = Writer()
    write_topic_partitions(writer, claims.owned)
    writer.int32(claims.generation)
    return writer.to_bytes()


def encode_cooperative_sticky_user_data(generation: int) -> bytes:
    """User data of "cooperative-sticky", as Java clients write it; what is owned stands in the protocol's field."""
    writer = Writer()
    writer.int32(generation)
    return writer.to_bytes()


def _claims_in_user_data(user_data: bytes | None) -> Claims:
    try:
        return decode_sticky_user_data(user_data or b"")
    except DecodeError:
        return Claims(owned={}, generation=NO_GENERATION)


def _generation_in_user_data(user_data: bytes | None) -> int:
    if user_data is not None and len(user_data) == _GENERATION_BYTES:
        return max(Reader(user_data).int32("generation"), NO_GENERATION)
    # librdkafka sends the layout of "sticky" here; Java would take its count of topics for the generation.
    return _claims_in_user_data(user_data).generation


def _read_claims(reader: Reader) -> Claims:
    owned = read_topic_partitions(reader)
    generation = max(reader.int32("generation"), NO_GENERATION) if reader.remaining else NO_GENERATION
    if reader.remaining:
        raise reader.error(f"{reader.remaining} trailing bytes")
    return Claims(owned=owned, generation=generation)


def _read_versioned_claims(reader: Reader) -> Claims:
    version = reader.int16("version")
    if version not in {0, 1}:
        raise reader.error(f"unknown version {version}")
    return _read_claims(reader)
