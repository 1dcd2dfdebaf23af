"""State of a control topic's reader for one group: the newest plan, and whether to follow it.

It takes raw records from the beginning of the topic, in any order and any number of times, and reads no clock: callers
pass the time. It needs no client library. One thread feeds it; other threads may query it meanwhile.

    newest = the record of the largest epoch seen; an epoch that is not larger changes nothing
    plan   = newest, unless it was withdrawn, is a dry run, is for a group that the broker assigns, or its time is over
"""

import enum
import logging
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from assignor.errors import DecodeError
from assignor.protocol import control
from assignor.protocol.control import ControlRecord
from assignor.protocol.json_fields import MAX_INTEGER
from assignor.protocol.kafka.consumer import TopicPartitions

log = logging.getLogger(__name__)

Headers = Iterable[tuple[str, bytes | str | None]] | None

# Digits of a 64-bit number: Python refuses to read one of thousands.
_EPOCH_DIGITS = 19


class Fed(enum.Enum):
    """Effect of a record on the state."""

    NEWER = "a plan of a newer epoch"
    WITHDRAWN = "the plan was withdrawn"
    OLD = "an epoch that is not newer"
    OTHER = "another group"
    DAMAGED = "damaged"


class Newest(NamedTuple):
    """Newest record of a group, as of a given time."""

    epoch: int
    """Largest epoch seen."""
    plan: ControlRecord | None
    """The plan to follow; None for none."""
    over: ControlRecord | None
    """The plan that was to be followed until its time was over; None for none."""


class ControlState:
    """The newest record of one group; feed it every record of the control topic.

    Attributes:
        cluster: Name of the cluster in the records, by default of the job Kafka's id of the cluster.
        group: Group id.
        damaged: Number of records of the group that could not be read.
    """

    __slots__ = ("_key", "_seen", "cluster", "damaged", "group")

    def __init__(self, *, cluster: str, group: str) -> None:
        self.cluster = cluster
        self.group = group
        self.damaged = 0
        self._key = control.encode_key(cluster, group)
        # One value, so that a thread that asks never meets an epoch with the plan of another.
        self._seen: tuple[int, ControlRecord | None] = (0, None)

    @property
    def epoch(self) -> int:
        """Largest epoch seen, withdrawals and dry runs included; 0 before the first."""
        return self._seen[0]

    def feed(self, key: bytes | None, value: bytes | None, headers: Headers = None) -> Fed:
        """Process one record and return its effect. Never raises, whatever the bytes."""
        # Compared as compaction compares: the records of other groups, which are nearly all, are not decoded.
        if key != self._key:
            return Fed.OTHER
        try:
            if value is None:
                return self._withdraw(_epoch_of(headers))
            return self._take(control.decode(value))
        except DecodeError as error:
            self._note_damage(error)
            return Fed.DAMAGED

    def plan(self, now_ms: int) -> ControlRecord | None:
        """The plan to follow at that time, in ms since 1970; None for none."""
        return self.newest(now_ms).plan

    def newest(self, now_ms: int) -> Newest:
        """Largest epoch seen, and the plan that goes with it at that time, in ms since 1970."""
        epoch, newest = self._seen
        # Only members that use the classic protocol ask.
        if newest is None or newest.dry_run or newest.group_protocol != "classic":
            return Newest(epoch, None, None)
        if now_ms >= newest.valid_until_ms:
            return Newest(epoch, None, newest)
        return Newest(epoch, newest, None)

    def _take(self, record: ControlRecord) -> Fed:
        if (record.cluster, record.group) != (self.cluster, self.group):
            raise DecodeError("the key and the value name different groups", position=0)
        if record.epoch <= self.epoch:
            return Fed.OLD
        self._seen = (record.epoch, record)
        return Fed.NEWER

    def _withdraw(self, epoch: int | None) -> Fed:
        # Somebody's hand-made null has no epoch. To stop following is always safe, so it counts.
        if epoch is not None and epoch < self.epoch:
            return Fed.OLD
        self._seen = (max(self.epoch, epoch or 0), None)
        return Fed.WITHDRAWN

    def _note_damage(self, error: DecodeError) -> None:
        self.damaged += 1
        if self.damaged == 1:
            log.warning(
                "a control record of this group cannot be decoded; it and all others like it are ignored, and the "
                "previous plan stays in force; withdraw the plan or publish another",
                extra={"group": self.group, "problem": str(error)},
            )


class Misfit(enum.Enum):
    """Reason why a plan does not fit this member."""

    GENERATION = "made for another generation"
    MEMBER = "not a member of the plan"
    BASE = "made for other partitions of this member"
    TARGET = "target is not a permutation of the base"


def misfit(
    plan: ControlRecord, *, generation: int, member: str, owned: AbstractSet[tuple[str, int]]
) -> Misfit | None:
    """Return why the plan cannot be followed within a generation; None if it can.

    Args:
        plan: From `ControlState.plan`.
        generation: The group's present generation.
        member: Member id of the caller.
        owned: Partitions that Kafka assigned to it in this generation, as (topic, partition).
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
            if digits and digits.isdecimal() and len(digits) <= _EPOCH_DIGITS:
                return min(int(digits), MAX_INTEGER)
            return None
    return None
