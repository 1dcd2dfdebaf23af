"""Answers of a group's members to a plan."""

from assignor.model.group import Group
from assignor.protocol.migration import is_why
from pipeline.planning import reasons
from pipeline.planning.facts import AckFacts, GroupFacts
from pipeline.planning.state import PlanState

_ACCEPTING = frozenset({"accepted", "applied"})
_FOLLOWED_WITHIN = frozenset({"range", "roundrobin"})
"""Assignors of groups that may follow within a generation; other groups follow by a rebalance of their leader."""

_LEAST_TIME_MS = 60_000
"""A member may be busy with what it has polled, and hears of a plan when it polls again."""


def follows_within_generation(facts: GroupFacts) -> bool:
    """Return whether the group's members may follow a plan within their generation."""
    # The broker's own assignor may be called range as well.
    return not facts.is_kip848 and facts.assignor in _FOLLOWED_WITHIN


def accepting(plan: PlanState, facts: GroupFacts) -> frozenset[str]:
    """Members that have accepted the newest publication."""
    return frozenset(ack.member_id for ack in _acks(plan, facts) if ack.kind in _ACCEPTING)


def answered(plan: PlanState, facts: GroupFacts) -> frozenset[str]:
    """Return the members that have answered the newest publication."""
    return frozenset(ack.member_id for ack in _acks(plan, facts))


def silent(plan: PlanState, facts: GroupFacts, *, settle_ms: int, now_ms: int) -> tuple[str, ...]:
    """Return the members that the plan needs and that have not answered within the time for a group to settle.

    Empty unless others have accepted the plan: without any answer, members may not have read it yet. An ended plan
    needs no answer.
    """
    if plan.status != "open":
        return ()
    if not follows_within_generation(facts) or not accepting(plan, facts):
        return ()
    if now_ms - plan.sent_at_ms < max(settle_ms, _LEAST_TIME_MS):
        return ()
    needed = {*plan.revoked, *plan.receivers}
    members = {member.member_id for member in facts.members}
    return tuple(sorted((needed & members) - answered(plan, facts)))


def refusal(plan: PlanState | None, facts: GroupFacts) -> str | None:
    """The refusal of the newest publication, by the first member that has sent one."""
    if plan is None:
        return None
    refused = [ack for ack in _acks(plan, facts) if ack.kind == "refused"]
    first = min(refused, key=lambda ack: ack.member_id, default=None)
    return reasons.refused(first.member_id, first.why) if first else None


def is_refused_for_migration(plan: PlanState, group: Group, facts: GroupFacts) -> bool:
    """Return whether all answers refuse the plan because of migration, and the members are still the same.

    Members with other ids may be other programs, or have other settings.
    """
    acks = _acks(plan, facts)
    is_same_group = set(plan.target) == set(group.member_ids)
    return is_same_group and bool(acks) and all(ack.kind == "refused" and is_why(ack.why) for ack in acks)


def _acks(plan: PlanState, facts: GroupFacts) -> list[AckFacts]:
    """Acknowledgements of the newest publication, by members of the group."""
    members = {member.member_id for member in facts.members}
    return [ack for ack in facts.acks if ack.epoch == plan.epoch and ack.member_id in members]
