"""What became of a published plan, from what the group does and what its members say."""

from dataclasses import replace

from assignor.model.group import Group
from assignor.protocol.migration import is_why
from pipeline.planning.facts import AckFacts, GroupFacts
from pipeline.planning.state import PlanState, PlanStatus
from pipeline.planning.target import Way

_LEFT = 0.05
"""A backlog is gone when so much of it is left, or what arrives in `_ARRIVALS_S`: commits come in steps."""
_ARRIVALS_S = 10.0


def progress(plan: PlanState, way: Way | None, group: Group, facts: GroupFacts, *, now_ms: int) -> PlanState:
    """The plan as it stands now.

    Args:
        plan: As it stood.
        way: Where the group is on its way to the target; None when the target is of other members.
        group: The group.
        facts: With the acknowledgements of its members.
        now_ms: Time of the decision.
    """
    is_left = plan.is_left or (way is None and now_ms >= plan.valid_until_ms)
    plan = replace(_drained(plan, group, now_ms=now_ms), is_left=is_left)
    if plan.status != "open":
        return plan
    accepted = any(ack.kind in {"accepted", "applied"} for ack in _said(plan, facts))
    done = way.done if way is not None and not way.is_off else 0
    plan = replace(plan, is_adopted=plan.is_adopted or accepted or done > 0, done=max(done, plan.done))
    if way is not None and way.is_there:
        return _now(plan, "applied", f"all {way.moves} moves are made", now_ms=now_ms)
    refusal = _refusal(plan, facts)
    if refusal is not None and not accepted and plan.done == plan.done_then:
        return (_ended if plan.done else _now)(plan, "refused", refusal, now_ms=now_ms)
    if way is None:
        return _ended(
            plan, "superseded", "the members or the partitions of the group have changed", now_ms=now_ms
        )
    is_another = facts.generation != plan.base_generation and not way.is_between
    if (way.is_off or is_another) and not plan.is_adopted:
        return _now(plan, "superseded", "the group was rebalanced before any member took it", now_ms=now_ms)
    return expired(plan, facts, now_ms=now_ms)


def expired(plan: PlanState, facts: GroupFacts, *, now_ms: int) -> PlanState:
    """The same plan, over if its time is."""
    if plan.status != "open" or now_ms < plan.valid_until_ms:
        return plan
    words = ("its time was over", _refusal(plan, facts))
    return _ended(plan, "expired", "; ".join(word for word in words if word), now_ms=now_ms)


def superseded(plan: PlanState, why: str, *, now_ms: int) -> PlanState:
    """The same plan, over if another takes its place before it is applied."""
    return _ended(plan, "superseded", why, now_ms=now_ms) if plan.status == "open" else plan


def helped(plan: PlanState | None, group: Group) -> bool:
    """Whether at least half of the lag that the plan was made for is gone; True when there was none."""
    return plan is None or plan.drained_s is not None or 2 * int(group.lag.sum()) <= plan.lag


def is_refused_for_migration(plan: PlanState, group: Group, facts: GroupFacts) -> bool:
    """Whether the members that the plan is for refuse it because of migration, all who have answered.

    Members with other ids may be other programs, or have other settings.
    """
    answers = _said(plan, facts)
    is_same_group = set(plan.target) == set(group.member_ids)
    return (
        is_same_group and bool(answers) and all(ack.kind == "refused" and is_why(ack.why) for ack in answers)
    )


def _refusal(plan: PlanState, facts: GroupFacts) -> str | None:
    """Who has refused the newest publication, and why."""
    refused = [ack for ack in _said(plan, facts) if ack.kind == "refused"]
    first = min(refused, key=lambda ack: ack.member_id, default=None)
    return f"member {first.member_id}: {first.why}" if first else None


def _said(plan: PlanState, facts: GroupFacts) -> list[AckFacts]:
    """What members of the group say of the newest publication."""
    members = {member.member_id for member in facts.members}
    return [ack for ack in facts.acks if ack.epoch == plan.epoch and ack.member_id in members]


def _drained(plan: PlanState, group: Group, *, now_ms: int) -> PlanState:
    left = float(group.lag.sum())
    if plan.drained_s is not None or left > max(_LEFT * plan.lag, _ARRIVALS_S * float(group.rate.sum())):
        return plan
    return replace(plan, drained_s=(now_ms - plan.published_at_ms) / 1000)


def _ended(plan: PlanState, status: PlanStatus, why: str, *, now_ms: int) -> PlanState:
    """A plan that ends before its target: what was made of it until then counts."""
    if plan.is_adopted:
        return _now(plan, "partly", f"{plan.done} of {plan.moves} moves were made; {why}", now_ms=now_ms)
    return _now(plan, status, why, now_ms=now_ms)


def _now(plan: PlanState, status: PlanStatus, why: str, *, now_ms: int) -> PlanState:
    return replace(plan, status=status, why=why, status_at_ms=now_ms)
