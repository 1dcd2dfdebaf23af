"""Statuses of partitions, the worst first: how bad each is and what it means. `pipeline.lag.status` has the rules."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Level = Literal["good", "fair", "bad", "none"]
"""Severity; "none" if unknown. The page and the terminal have a colour for each level."""


class Status(NamedTuple):
    """Level and meaning of a status."""

    level: Level
    meaning: str
    """A sentence."""


STATUSES: Mapping[str, Status] = {
    "STOP": Status("bad", "there are unread records, and commits have ceased"),
    "STALL": Status("bad", "commits go on, all of the same offset, and records wait"),
    "EXPIRED": Status("bad", "Kafka deleted the next record before the group read it"),
    "REWIND": Status("fair", "a commit went back: records are read again"),
    "WARN": Status("fair", "the lag did not fall from one commit to the next"),
    "NOT_COMMITTED": Status("fair", "the group has committed nothing for this partition"),
    "UNKNOWN": Status("none", "where the log ends is unknown, or the commit does not belong to this log"),
    "DELETED": Status("none", "the brokers say that the topic does not exist"),
    "OK": Status("good", "the group keeps up with this partition, or works off its lag"),
}
"""The statuses in the order in which an operator should check them."""

WORST_FIRST = tuple(STATUSES)
_UNKNOWN = Status("none", "")
"""Entry for a status that this version does not know."""


def status_of(name: str) -> Status:
    """Level and meaning of this status."""
    return STATUSES.get(name, _UNKNOWN)


def rank(name: str) -> int:
    """Position in the order of attention, 0 first. A status that this version does not know ranks first, too."""
    return WORST_FIRST.index(name) if name in STATUSES else 0
