"""Which published plans of KIP-848 groups lagwise pokes for, and why not for others. Pure."""

from collections.abc import Mapping
from typing import Any

from assignor.protocol.control import ControlRecord
from pipeline.poke_reasons import NOT_KIP848, OTHER_MEMBERS

GROUP_COLUMNS = ("group_id", "group_type", "generation", "members", "reconciliation")
"""Columns of `schemas.CONSUMER_GROUPS` that `why_not` needs."""
OVER = "the plan is no longer valid"
BY_EXPRESSION = (
    "a member subscribes by a regular expression, which the broker would resolve with the rights of lagwise's user; "
    "the plan waits until a member joins or leaves"
)
CLASSIC = "a member uses the classic protocol"


def is_for_broker(record: ControlRecord) -> bool:
    """Whether brokers apply this plan."""
    return record.group_protocol == "consumer" and not record.dry_run


def readers(record: ControlRecord) -> frozenset[str]:
    """Members to which the plan gives partitions. If one of them is missing, the broker does not apply the plan."""
    return frozenset(name for name, one in record.members.items() if any(one.target.values()))


def why_not(group: Mapping[str, Any] | None, record: ControlRecord, *, now_ms: int) -> str | None:
    """Why lagwise does not poke the group for its published plan; None if it does.

    Args:
        group: `GROUP_COLUMNS` of the stored group; None if it is not stored.
        record: The plan.
        now_ms: Time.
    """
    if group is None or group["group_type"] != "consumer" or group["generation"] is None:
        return NOT_KIP848
    members = group["reconciliation"] or ()
    present = {member["member_id"] for member in group["members"] or ()}
    candidates = (
        (now_ms >= record.valid_until_ms, OVER),
        (not readers(record) <= present, OTHER_MEMBERS),
        (any(one["is_classic"] for one in members), CLASSIC),
        (any(one["topic_regex"] for one in members), BY_EXPRESSION),
    )
    return next((why for applies, why in candidates if applies), None)
