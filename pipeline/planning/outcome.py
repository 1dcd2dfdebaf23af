"""What became of a published plan, from what the group does and what its members acknowledge."""

from dataclasses import replace

from assignor.model.group import Group
from assignor.protocol.migration import is_why
from pipeline.planning import reasons
from pipeline.planning.facts import AckFacts, GroupFacts
from pipeline.planning.progress import PlanProgress
from pipeline.planning.state import PlanState, PlanStatus

_LEFT = 0.05
"""A backlog is gone when only this share of it is left, or what arrives in `_ARRIVALS_S`: commits come in steps."""
_ARRIVALS_S = 10.0


def outcome_of(
    plan: PlanState, progress: PlanProgress | None, group: Group, facts: GroupFacts, *, now_ms: int
) -> PlanState:
    """The plan with its status as of now.

    Args:
        plan: With its status as of the decision before.
        progress: How far the group has come towards the target; None when the target does not fit it any more.
        group: The group.
        facts: With the acknowledgements of its members.
        now_ms: Time of the decision.
    """
    is_left = plan.is_left or (progress is None and now_ms >= plan.valid_until_ms)
    plan = replace(_drained(plan, group, now_ms=now_ms), is_left=is_left)
    if plan.status != "open":
        return plan
    accepted = any(ack.kind in {"accepted", "applied"} for ack in _acks(plan, facts))
    done = progress.done if progress is not None and not progress.is_off else 0
    plan = replace(plan, is_adopted=plan.is_adopted or accepted or done > 0, done=max(done, plan.done))
    if progress is not None and progress.is_there:
        return _now(plan, "applied", reasons.all_made(progress.moves), now_ms=now_ms)
    refusal = _refusal(plan, facts)
    if refusal is not None and not accepted and plan.done == plan.done_then:
        return (_ended if plan.done else _now)(plan, "refused", refusal, now_ms=now_ms)
    if progress is None:
        return _ended(plan, "superseded", reasons.GROUP_CHANGED, now_ms=now_ms)
    is_another = facts.generation != plan.base_generation and not progress.is_between
    if (progress.is_off or is_another) and not plan.is_adopted:
        return _now(plan, "superseded", reasons.REBALANCED_BEFORE_ACCEPTED, now_ms=now_ms)
    return expired(plan, facts, now_ms=now_ms)


def expired(plan: PlanState, facts: GroupFacts, *, now_ms: int) -> PlanState:
    """The plan, ended if it has expired."""
    if plan.status != "open" or now_ms < plan.valid_until_ms:
        return plan
    causes = (reasons.EXPIRED, _refusal(plan, facts))
    return _ended(plan, "expired", "; ".join(cause for cause in causes if cause), now_ms=now_ms)


def superseded(plan: PlanState, why: str, *, now_ms: int) -> PlanState:
    """The plan, ended for this cause if it is still open."""
    return _ended(plan, "superseded", why, now_ms=now_ms) if plan.status == "open" else plan


def helped(plan: PlanState | None, group: Group) -> bool:
    """Whether at least half of the lag that the plan was made for is gone; True when there was none."""
    return plan is None or plan.drained_s is not None or 2 * int(group.lag.sum()) <= plan.lag


def is_refused_for_migration(plan: PlanState, group: Group, facts: GroupFacts) -> bool:
    """Whether every member that has answered refuses the plan because of migration; its members are still the same.

    Members with other ids may be other programs, or have other settings.
    """
    answers = _acks(plan, facts)
    is_same_group = set(plan.target) == set(group.member_ids)
    return (
        is_same_group and bool(answers) and all(ack.kind == "refused" and is_why(ack.why) for ack in answers)
    )


def _refusal(plan: PlanState, facts: GroupFacts) -> str | None:
    """The refusal of the newest publication, by the first member that has sent one."""
    refused = [ack for ack in _acks(plan, facts) if ack.kind == "refused"]
    first = min(refused, key=lambda ack: ack.member_id, default=None)
    return reasons.refused(first.member_id, first.why) if first else None


def _acks(plan: PlanState, facts: GroupFacts) -> list[AckFacts]:
    """Acknowledgements of the newest publication, by members of the group."""
    members = {member.member_id for member in facts.members}
    return [ack for ack in facts.acks if ack.epoch == plan.epoch and ack.member_id in members]


def _drained(plan: PlanState, group: Group, *, now_ms: int) -> PlanState:
    left = float(group.lag.sum())
    if plan.drained_s is not None or left > max(_LEFT * plan.lag, _ARRIVALS_S * float(group.rate.sum())):
        return plan
    return replace(plan, drained_s=(now_ms - plan.published_at_ms) / 1000)


def _ended(plan: PlanState, status: PlanStatus, why: str, *, now_ms: int) -> PlanState:
    """The plan, ended before its target: `partly` if members had accepted it."""
    if plan.is_adopted:
        return _now(plan, "partly", reasons.partly_made(plan.done, plan.moves, why), now_ms=now_ms)
    return _now(plan, status, why, now_ms=now_ms)


def _now(plan: PlanState, status: PlanStatus, why: str, *, now_ms: int) -> PlanState:
    return replace(plan, status=status, why=why, status_at_ms=now_ms)
