"""Which published plans of KIP-848 groups their brokers are poked for, and why not the others. Pure."""

from collections.abc import Mapping
from typing import Any

from assignor.protocol.control import ControlRecord

GROUP_COLUMNS = ("group_id", "group_type", "generation", "members", "reconciliation")
"""What `why_not` needs of `schemas.CONSUMER_GROUPS`."""
NOT_KIP848 = "it is no group of group.protocol=consumer any more"
OVER = "the plan is over"
OTHER_MEMBERS = "members that the plan gives partitions have left"
BY_EXPRESSION = (
    "a member subscribes by a regular expression, which the broker would resolve by the rights of lagwise's user; the "
    "plan waits until a member joins or leaves"
)
CLASSIC = "a member speaks the classic protocol"


def is_for_broker(record: ControlRecord) -> bool:
    """Whether the plan is one that a broker applies."""
    return record.group_protocol == "consumer" and not record.dry_run


def readers(record: ControlRecord) -> frozenset[str]:
    """The members to which the plan gives partitions: without one of them it fits nobody."""
    return frozenset(name for name, one in record.members.items() if any(one.target.values()))


def why_not(group: Mapping[str, Any] | None, record: ControlRecord, *, now_ms: int) -> str | None:
    """Why the group's broker is not poked for a plan that is published for it; None if it is.

    Args:
        group: `GROUP_COLUMNS` of the group as it is stored; None where it is not.
        record: The plan.
        now_ms: Time.
    """
    if group is None or group["group_type"] != "consumer" or group["generation"] is None:
        return NOT_KIP848
    reached = group["reconciliation"] or ()
    present = {member["member_id"] for member in group["members"] or ()}
    candidates = (
        (now_ms >= record.valid_until_ms, OVER),
        (not readers(record) <= present, OTHER_MEMBERS),
        (any(one["is_classic"] for one in reached), CLASSIC),
        (any(one["topic_regex"] for one in reached), BY_EXPRESSION),
    )
    return next((why for applies, why in candidates if applies), None)
