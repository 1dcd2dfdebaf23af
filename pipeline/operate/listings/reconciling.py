"""Members of KIP-848 groups that are behind their target assignment, and the cause."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.operate.output import Row

Held = Mapping[str, Sequence[int]]
"""Partition numbers by topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BehindMember:
    """A member that has not reached its target assignment."""

    member_id: str
    client_id: str | None
    behind_s: float
    timeout_s: float | None
    """Its rebalance timeout; None if unknown."""
    gives_up: Held
    """Partitions that it still owns and has to revoke."""
    waits_for: Mapping[str, Held]
    """Partitions of its target that other members still own, by member id."""

    @property
    def is_stuck(self) -> bool:
        """Whether it is behind for longer than its rebalance timeout, within which it has to revoke partitions."""
        return self.timeout_s is not None and self.behind_s > self.timeout_s


def behind_members(group: Row, at: datetime) -> list[BehindMember]:
    """Members of a row of `consumer_groups` that are behind, by member id; none where that is unknown.

    `at` is the clock of the newest batch of the tables.
    """
    members = {member["member_id"]: member for member in group["members"] or ()}
    return [
        BehindMember(
            member_id=row["member_id"],
            client_id=members[row["member_id"]]["client_id"],
            behind_s=(at - row["behind_since"]).total_seconds(),
            timeout_s=None if row["rebalance_timeout_ms"] is None else row["rebalance_timeout_ms"] / 1000,
            gives_up=dict(row["pending_revocation"] or ()),
            waits_for=_held_by_others(row, members),
        )
        for row in group["reconciliation"] or ()
        if row["behind_since"] is not None
    ]


def _held_by_others(row: Row, members: Mapping[str, Row]) -> dict[str, dict[str, list[int]]]:
    # Arrow maps are lists of pairs, unless they were converted to dicts.
    target, found = dict(row["target"] or ()), dict[str, dict[str, list[int]]]()
    for member_id, member in members.items():
        if member_id == row["member_id"]:
            continue
        for topic, numbers in dict(member["assigned"] or ()).items():
            wanted = sorted({*numbers} & {*target.get(topic, ())})
            if wanted:
                found.setdefault(member_id, {})[topic] = wanted
    return found
