"""The planner's present facts about the group, in its own types."""

from pipeline.operate.doctor.evidence import GroupEvidence, Row
from pipeline.planning.facts import GroupFacts
from pipeline.planning.problem.capacity import identities
from pipeline.planning.rows.facts_of_rows import group_facts
from pipeline.planning.state import PlanState, from_json

_NO_GROUP: Row = dict.fromkeys(
    (
        *("group_type", "state", "protocol_type", "assignor", "generation", "members"),
        *("target_epoch", "reconciliation", "offsets_partition"),
    )
)
"""A group that only commits offsets."""
_HAND_OVERS = frozenset({"release", "taken"})


def facts_of(group: GroupEvidence) -> GroupFacts:
    """Return the group with answers of members and orders of operators; members lack handed-over partitions."""
    stamp = group.stream.stamp
    row = {
        **(group.group or _NO_GROUP),
        "group_id": group.group_id,
        "commits_partition": group.offsets_partition,
        "unconfirmed_reason": next(
            (
                row["unconfirmed_reason"]
                for row in (group.group, *group.lags)
                if row and row["unconfirmed_reason"]
            ),
            None,
        ),
        "acks": [ack for ack in group.acks if ack["kind"] not in _HAND_OVERS],
        "moved": (),
        "orders": group.orders,
    }
    return group_facts(
        row,
        cluster="",
        behind=stamp.behind if stamp else (),
        provisional_reason=stamp.reason if stamp else None,
        held=stamp.held if stamp else None,
        at_ms=stamp.at_ms if stamp else 0,
    )


def plan_of(group: GroupEvidence) -> PlanState | None:
    """The newest published plan as the newest decision left it; None also when another version has written it."""
    return from_json(group.decision["state"]).plan if group.decision else None


def names_of(facts: GroupFacts) -> dict[str, str]:
    """Return each member's display name, as in table `member_rates`, by member id: instance, client or member id."""
    ids = [member.member_id for member in facts.members]
    return dict(zip(ids, identities(facts.members), strict=True))
