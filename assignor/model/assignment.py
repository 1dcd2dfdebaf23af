"""The answer of a strategy: a member for every partition, or the reason why it has none."""

import enum
from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Bools, Int8s, Int32s
from assignor.model.group import Group


class Unassigned(enum.IntEnum):
    """Why a partition has no member: a number for arrays, with words for operators."""

    ASSIGNED = 0
    NOBODY_SUBSCRIBES = 1
    WITHHELD = 2
    BEYOND_JOIN = 3
    OWNER_DOES_NOT_READ = 4
    NOBODY_TAKES = 5

    @property
    def words(self) -> str:
        """Return the reason in words."""
        return _WORDS[self]


_WORDS = {
    Unassigned.ASSIGNED: "assigned",
    Unassigned.NOBODY_SUBSCRIBES: "no member subscribes to the topic",
    Unassigned.WITHHELD: "withheld until the member that may still hold it has revoked it",
    Unassigned.BEYOND_JOIN: "the smallest topic of the join has no partition of this number",
    Unassigned.OWNER_DOES_NOT_READ: "the member of this partition number does not subscribe to the topic",
    Unassigned.NOBODY_TAKES: "the members that could have it do not follow plans",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assignment:
    """One entry for each of P partitions."""

    member: Int32s
    """Member index of each partition, -1 without a member."""
    why: Int8s
    """`Unassigned` code of each partition, 0 exactly where it has a member."""
    remarks: tuple[str, ...] = ()
    """Remarks of the strategy on the assignment, sentences for an operator."""
    bound_s: float | None = None
    """Seconds below which no assignment drains the group, if the strategy has computed this bound."""

    @classmethod
    def complete(cls, group: Group, member: Int32s, *, remarks: tuple[str, ...] = ()) -> "Assignment":
        """Return an assignment that leaves out only partitions without subscribers or eligible members."""
        is_read = group.subscriptions.subscriber_counts() > 0
        # 0 is ASSIGNED, 1 NOBODY_SUBSCRIBES: looking up an enum's members is slow, and there are thousands of groups.
        why = group.topics.by_partition((~is_read).astype(np.int8))
        if group.is_constrained():
            why[group.readable() & ~group.placeable()] = Unassigned.NOBODY_TAKES
        return cls(member=member, why=why, remarks=remarks)

    def without(self, partitions: Bools, *, why: Unassigned) -> "Assignment":
        """Return the same assignment without some partitions, which all get one reason."""
        return Assignment(
            member=np.where(partitions, np.int32(-1), self.member),
            why=np.where(partitions, np.int8(why), self.why),
            remarks=self.remarks,
        )
