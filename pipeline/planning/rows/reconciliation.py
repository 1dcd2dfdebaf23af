"""Plan: reconciliation of each member of a KIP-848 group, from the group's records."""

from collections.abc import Mapping
from typing import Any

from pipeline.planning import broker_reasons
from pipeline.planning.facts import Reconciliation


def reconciliations(row: Mapping[str, Any], *, at_ms: int) -> dict[str, Reconciliation]:
    """Return the reconciliations by member id; empty for a group of another type.

    Args:
        row: `members` and `reconciliation` of `schemas.CONSUMER_GROUPS`.
        at_ms: When the tables were true.
    """
    reached = {one["member_id"]: one for one in row["reconciliation"] or ()}
    return {
        member["member_id"]: _of_member(member, reached[member["member_id"]], at_ms=at_ms)
        for member in row["members"] or ()
        if member["member_id"] in reached
    }


def _of_member(member: Mapping[str, Any], reached: Mapping[str, Any], *, at_ms: int) -> Reconciliation:
    since, timeout_ms = reached["behind_since"], reached["rebalance_timeout_ms"]
    is_late = since is not None and timeout_ms is not None
    return Reconciliation(
        unknown=_unknown(member, reached),
        is_classic=bool(reached["is_classic"]),
        is_stuck=is_late and at_ms - since.timestamp() * 1000 > timeout_ms,
        server_assignor=reached["server_assignor"],
        target={topic: tuple(numbers) for topic, numbers in reached["target"] or ()},
    )


def _unknown(member: Mapping[str, Any], reached: Mapping[str, Any]) -> str | None:
    topic_ids = reached["unresolved_topic_ids"] or ()
    candidates = (
        (bool(topic_ids), broker_reasons.topics_unknown(topic_ids)),
        (member["error"] is not None, member["error"]),
        (member["topics"] is None, broker_reasons.SUBSCRIPTION_UNKNOWN),
        (member["assigned"] is None, broker_reasons.PARTITIONS_UNKNOWN),
        (reached["target"] is None, broker_reasons.TARGET_UNKNOWN),
        (reached["is_classic"] is None, broker_reasons.NO_RECONCILIATION),
    )
    return next((what for applies, what in candidates if applies), None)
