"""Statuses of partitions, the worst first, and what they mean; `pipeline.lag.status` has the rules."""

from collections.abc import Mapping

MEANINGS: Mapping[str, str] = {
    "STOP": "there are unread records, and commits have ceased",
    "STALL": "commits go on, all of the same offset, and records wait",
    "EXPIRED": "Kafka deleted the next record before the group read it",
    "REWIND": "a commit went back: records are read again",
    "WARN": "the lag did not fall from one commit to the next",
    "NOT_COMMITTED": "the group has committed nothing for this partition",
    "UNKNOWN": "where the log ends, or whether the commit belongs to this topic, is not known",
    "DELETED": "the brokers say that the topic does not exist",
    "OK": "the group keeps up with this partition, or works off its lag",
}
"""A sentence for each, in the order in which somebody should look at them."""
WORST_FIRST = tuple(MEANINGS)


def meaning_of(status: str) -> str:
    """A sentence; empty for a status that this version does not know."""
    return MEANINGS.get(status, "")


def rank(status: str) -> int:
    """The lower, the sooner somebody should look at it; what this version does not know is as bad as the worst."""
    return WORST_FIRST.index(status) if status in MEANINGS else 0
