"""User data of the assignors of this package: a member's data when it joins, and the leader's answer.

    subscription   int16 version | claims [topic string | partitions [int32]] | generation int32
                   | plan epoch int64 | held int8
    assignment     int16 version | epoch int64 | outcome int8 | why string

A later version only appends, so its tail is ignored. Claims and generation are those of KIP-341. The claims
stand here and not in the protocol's own field, because an eager member claims what it no longer reads, and
because aiokafka shows its assignors no other field; `held` tells the two kinds of claims apart. The epoch of the
answer is that of the newest plan the leader took into account or, with sticky-stream-join, that of KIP-315; the
outcome is what became of that plan, so that a member can acknowledge it without having read it.
"""

import enum
from dataclasses import dataclass

from assignor.errors import DecodeError
from assignor.protocol.kafka.consumer import NO_GENERATION, read_topic_partitions, write_topic_partitions
from assignor.protocol.kafka.reader import Reader
from assignor.protocol.kafka.sticky import Claims
from assignor.protocol.kafka.writer import Writer

VERSION = 0
NO_EPOCH = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionData:
    """User data of a subscription: what a member claims when it joins. Not checked: any client may send it."""

    claims: Claims
    """Partitions that it had in its last generation, or under KIP-315 in its last epoch."""
    plan_epoch: int
    """Newest epoch of a plan that it has read, `NO_EPOCH` for none."""
    held: bool
    """True if it still reads what it claims: a cooperative member."""


UNKNOWN = SubscriptionData(claims=Claims(owned={}, generation=NO_GENERATION), plan_epoch=NO_EPOCH, held=False)
"""Used if user data is missing or cannot be read."""


def encode_subscription_data(data: SubscriptionData) -> bytes:
    """The bytes of a subscription's user data.

    Raises:
        EncodeError: A name or a number that its field cannot hold.
    """
    writer = Writer()
    writer.int16(VERSION)
    write_topic_partitions(writer, data.claims.owned)
    writer.int32(data.claims.generation)
    writer.int64(data.plan_epoch)
    writer.raw(bytes([data.held]))
    return writer.to_bytes()


def decode_subscription_data(user_data: bytes) -> SubscriptionData:
    """Decode the user data of a subscription.

    Raises:
        DecodeError: Negative version, truncated, null or not UTF-8 topics. Any member can send such bytes.
    """
    reader = Reader(user_data)
    _read_version(reader)
    owned = read_topic_partitions(reader)
    generation = max(reader.int32("generation"), NO_GENERATION)
    plan_epoch = max(reader.int64("plan epoch"), NO_EPOCH)
    held = reader.int8("held") != 0
    return SubscriptionData(
        claims=Claims(owned=owned, generation=generation), plan_epoch=plan_epoch, held=held
    )


def subscription_data_of(user_data: bytes | None) -> SubscriptionData:
    """Decode the user data of a member's subscription; unreadable bytes give `UNKNOWN`, as in Kafka."""
    try:
        return decode_subscription_data(user_data or b"")
    except DecodeError:
        return UNKNOWN


class Outcome(enum.IntEnum):
    """The leader's decision on the plan, for one member."""

    SILENT = 0
    """There was none, or the member has yet to revoke or to be given something."""
    APPLIED = 1
    """The member has its target."""
    REFUSED = 2
    """The plan did not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentData:
    """User data of an assignment, from the leader to one member. Not validated: any client may send it."""

    epoch: int
    """Epoch of the newest plan that the leader took into account, or of KIP-315; `NO_EPOCH` for neither."""
    outcome: Outcome = Outcome.SILENT
    why: str = ""
    """REFUSED: one sentence."""


def encode_assignment_data(data: AssignmentData) -> bytes:
    """The bytes of an assignment's user data.

    Raises:
        EncodeError: A number or a text that its field cannot hold.
    """
    writer = Writer()
    writer.int16(VERSION)
    writer.int64(data.epoch)
    writer.raw(bytes([data.outcome]))
    writer.string(data.why)
    return writer.to_bytes()


def assignment_data_of(user_data: bytes | None) -> AssignmentData:
    """Decode the user data of an assignment; unreadable bytes count as no data."""
    reader = Reader(user_data or b"")
    try:
        _read_version(reader)
        epoch = max(reader.int64("epoch"), NO_EPOCH)
        outcome = reader.int8("outcome")
        why = reader.string("why")
    except DecodeError:
        return AssignmentData(epoch=NO_EPOCH)
    known = outcome in set(Outcome)
    return AssignmentData(epoch=epoch, outcome=Outcome(outcome) if known else Outcome.SILENT, why=why)


def _read_version(reader: Reader) -> None:
    version = reader.int16("version")
    if version < 0:
        raise reader.error(f"negative version {version}")
