"""Whether a KIP-848 member that joins may migrate a group online, as a control record says it.

Kafka 4 turns a classic group into one of the new protocol, under its members' feet, when a member with
`group.protocol=consumer` joins. Then the broker gives partitions to one member before another has given them up
within the old generation, so two read what was handed over, and both may commit. `disabled` in Kafka's
`group.consumer.migration.policy` on every broker is the only value with which that cannot happen.
"""

from typing import Final, Literal, TypeAlias

Migration: TypeAlias = Literal["disabled", "possible", "unknown"]
"""`disabled`: every broker refuses it. `possible`: some broker does not. `unknown`: not every broker has answered."""

POLICY: Final = "group.consumer.migration.policy"
"""Property of a broker."""

_HEAD = "migration is "
_WHY: dict[Migration, str] = {
    "possible": f"{_HEAD}possible: a KIP-848 member that joins would get partitions that were handed over; "
    f"set {POLICY}=disabled on every broker",
    "unknown": f"{_HEAD}unknown: lagwise could not read {POLICY} of every broker; "
    "allow it DescribeConfigs on the cluster, its log says what is missing",
}


def migration_of(text: str) -> Migration:
    """The value that the text stands for; one of a later version is `unknown`."""
    return "disabled" if text == "disabled" else "possible" if text == "possible" else "unknown"


def why_not(migration: Migration) -> str | None:
    """Why a plan of that value is not followed within a generation, in words; None if nothing speaks against it."""
    return _WHY.get(migration)


def is_why(why: str | None) -> bool:
    """Whether a refusal with this reason is about migration."""
    return why is not None and why.startswith(_HEAD)
