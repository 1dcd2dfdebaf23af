"""What a reader of the control topic knows of one group: the newest plan, and whether to follow it.

It is fed raw records, from the beginning of the topic, in whatever order and however often they come, and asks
no clock: the time is passed in. It belongs to no client library.

    newest = the record of the largest epoch seen; an epoch that is not larger changes nothing
    plan   = newest, unless it was withdrawn, is a dry run, or its time is over
"""

import enum
import logging
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from assignor.errors import DecodeError
from assignor.protocol import control
from assignor.protocol.control import ControlRecord
from assignor.protocol.kafka.consumer import TopicPartitions

log = logging.getLogger(__name__)

Headers = Iterable[tuple[str, bytes | str | None]] | None


class Fed(enum.Enum):
    """What a record did to the state."""

    NEWER = "a plan of a newer epoch"
    WITHDRAWN = "the plan was withdrawn"
    OLD = "an epoch that is not newer"
    OTHER = "another group"
    DAMAGED = "damaged"


class ControlState:
    """The newest record of one group; feed it every record of the control topic.

    Attributes:
        cluster: Name of the cluster in the records, by default of the job Kafka's id of the cluster.
        group: Group id.
        epoch: Largest epoch seen, withdrawals and dry runs included; 0 before the first.
        damaged: Number of records that could not be read.
    """

    __slots__ = ("_newest", "cluster", "damaged", "epoch", "group")

    def __init__(self, *, cluster: str, group: str) -> None:
        self.cluster = cluster
        self.group = group
        self.epoch = 0
        self.damaged = 0
        self._newest: ControlRecord | None = None

    def feed(self, key: bytes | None, value: bytes | None, headers: Headers = None) -> Fed:
        """Take in one record, and say what it did. Never raises, whatever the bytes."""
        try:
            if control.decode_key(key or b"") != (self.cluster, self.group):
                return Fed.OTHER
            if value is None:
                return self._withdraw(_epoch_of(headers))
            return self._take(control.decode(value))
        except DecodeError as error:
            self._note_damage(error)
            return Fed.DAMAGED

    def plan(self, now_ms: int) -> ControlRecord | None:
        """The plan to follow at that time, in ms since 1970; None for none."""
        newest = self._newest
        if newest is None or newest.dry_run or now_ms >= newest.valid_until_ms:
            return None
        return newest

    def _take(self, record: ControlRecord) -> Fed:
        if (record.cluster, record.group) != (self.cluster, self.group):
            raise DecodeError("the key names another group than the value", position=0)
        if record.epoch <= self.epoch:
            return Fed.OLD
        self.epoch, self._newest = record.epoch, record
        return Fed.NEWER

    def _withdraw(self, epoch: int | None) -> Fed:
        # Somebody's hand-made null has no epoch. To stop following is always safe, so it counts.
        if epoch is not None and epoch < self.epoch:
            return Fed.OLD
        self.epoch, self._newest = max(self.epoch, epoch or 0), None
        return Fed.WITHDRAWN

    def _note_damage(self, error: DecodeError) -> None:
        self.damaged += 1
        if self.damaged == 1:
            log.warning(
                "a record of the control topic is damaged; it and all like it are ignored",
                extra={"group": self.group, "problem": str(error)},
            )


class Misfit(enum.Enum):
    """Why a plan is not for this member as it stands."""

    GENERATION = "made for another generation"
    MEMBER = "not a member of the plan"
    BASE = "made for other partitions of this member"
    TARGET = "target is not a permutation of the base"


def misfit(
    plan: ControlRecord, *, generation: int, member: str, owned: AbstractSet[tuple[str, int]]
) -> Misfit | None:
    """Why the plan cannot be followed inside a generation, or None if it can.

    Args:
        plan: From `ControlState.plan`.
        generation: The group's, now.
        member: Member id of the one who asks.
        owned: What Kafka assigned to it in this generation, as (topic, partition).
    """
    if plan.base_generation != generation:
        return Misfit.GENERATION
    if member not in plan.members:
        return Misfit.MEMBER
    if set(spread(plan.members[member].base)) != owned:
        return Misfit.BASE
    if not _is_permutation(plan):
        return Misfit.TARGET
    return None


def spread(partitions: TopicPartitions) -> Iterator[tuple[str, int]]:
    """Every (topic, partition) of a mapping topic → partitions."""
    return ((topic, partition) for topic in partitions for partition in partitions[topic])


def targets(plan: ControlRecord) -> Mapping[tuple[str, int], str]:
    """Member id for every (topic, partition) that the plan places."""
    return {place: name for name, member in plan.members.items() for place in spread(member.target)}


def named_in_moves(plan: ControlRecord) -> frozenset[str]:
    """Member ids that some move is from or to."""
    ends = (member for move in plan.moves for member in (move.from_member, move.to_member))
    return frozenset(member for member in ends if member is not None)


def _is_permutation(plan: ControlRecord) -> bool:
    base = [place for member in plan.members.values() for place in spread(member.base)]
    target = [place for member in plan.members.values() for place in spread(member.target)]
    return len(base) == len(target) == len(set(base)) and set(base) == set(target)


def _epoch_of(headers: Headers) -> int | None:
    for name, text in headers or ():
        if name == "epoch":
            digits = text.decode("ascii", "replace") if isinstance(text, bytes) else text
            # Nineteen digits: Python refuses to read a number of thousands.
            return int(digits) if digits and digits.isdecimal() and len(digits) <= 19 else None  # noqa: PLR2004
    return None
