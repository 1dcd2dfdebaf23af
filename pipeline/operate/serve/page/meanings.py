"""What the statuses of partitions mean, in a sentence each; `pipeline.lag.status` has the rules."""

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
"""By status, the worst first."""


def meaning_of(status: str) -> str:
    """A sentence; empty for a status that this version does not know."""
    return MEANINGS.get(status, "")
