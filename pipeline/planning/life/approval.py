"""Approval: what an evaluation observes of a plan that waits for an operator, and what it answers to an approval.

A plan that waits stands as it is, whatever lag does, so that what is published is what the operator has looked at. Its
moves start from the group as it was: once that has changed, an approval is refused. Source: the proposals of Cruise
Control and of Strimzi's KafkaRebalance.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from assignor.errors import AssignorError
from assignor.protocol.commands import Approval, Orders
from assignor.protocol.instants import format_instant
from pipeline.planning import reasons
from pipeline.planning.facts import is_new
from pipeline.planning.life import order_reasons
from pipeline.planning.life.lifecycle import TABLE, Action, Event, Phase
from pipeline.planning.problem.case import Case
from pipeline.planning.progress import assignment_of, of_readers
from pipeline.planning.state import GroupState, WaitingPlan
from pipeline.planning.values import Decision, Published, Target, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingSight:
    """What is seen of a plan that waits, and of its group."""

    target: Target | None
    """Its target for the group as it is now; None when it does not fit the group any more."""
    generation: int | None
    is_overtaken: bool
    """See `Event.OTHER_PLAN`."""
    is_pinned: bool
    """It moves a partition that is pinned now."""
    is_approved: bool
    is_triggered: bool
    is_over: bool
    """See `Event.NEEDLESS`."""
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outlook:
    """What is to be done about the plan that waits, and about the newest approval."""

    action: Action
    """`WAIT`, `PUBLISH`, or `PLAN` where nothing waits any more."""
    target: Target | None = None
    """Target of the plan that waits or will be published."""
    approval: Approval | None = None
    """An approval that this decision answers."""
    refusal: str | None = None
    """Why it is refused; None when its plan is to be published, or when nothing is told of it any more."""
    missed_trigger_ms: int | None = None
    """See `Case.missed_trigger`; this decision answers it."""


def observe(waiting: WaitingPlan, sight: WaitingSight) -> Event:
    """The first event that applies."""
    return next((event for applies, event in _events(waiting, sight) if applies), Event.QUIET)


def _events(waiting: WaitingPlan, sight: WaitingSight) -> Iterator[tuple[bool, Event]]:
    """Whether each event applies, in their order."""
    target, is_rebalanced = sight.target, sight.generation != waiting.base_generation
    has_other_base = target is None or target.base_hash != waiting.base_hash
    yield sight.is_overtaken, Event.OTHER_PLAN
    yield sight.is_pinned, Event.PINNED
    yield target is None or (has_other_base and not is_rebalanced), Event.MEMBERS_CHANGED
    yield is_rebalanced and target is not None and not target.moves, Event.ARRIVED
    yield sight.now_ms >= waiting.valid_until_ms, Event.EXPIRED
    yield is_rebalanced, Event.REBALANCED
    yield sight.is_over, Event.NEEDLESS
    yield sight.is_approved, Event.APPROVED
    yield sight.is_triggered, Event.TRIGGERED


def look_at(case: Case, state: GroupState, *, is_overtaken: bool) -> Outlook:
    """Return what to do about the waiting plan, an approval, and a trigger that comes too late.

    Args:
        case: The group.
        state: Before this decision.
        is_overtaken: Something else is done about the group than to plan.
    """
    outlook = _of_waiting(case, state, is_overtaken=is_overtaken)
    return replace(outlook, missed_trigger_ms=case.missed_trigger(state))


def _of_waiting(case: Case, state: GroupState, *, is_overtaken: bool) -> Outlook:
    waiting = state.waiting if case.rules.needs_approval else None
    approval = unanswered(case.facts.orders, state, now_ms=case.now_ms)
    if waiting is None:
        return _outlook(case, approval, waiting, None, None)
    target = _target_of(case, waiting)
    is_same_base = target is not None and target.base_hash == waiting.base_hash
    sight = WaitingSight(
        target=target,
        # An epoch alone is no rebalance: what the members of a KIP-848 group hold is in the hash of the base.
        generation=waiting.base_generation
        if is_same_base and case.facts.is_kip848
        else case.facts.generation,
        is_overtaken=is_overtaken,
        is_pinned=target is not None and _moves_pinned(case, target),
        is_approved=approval is not None and approval.hashes == waiting.hashes,
        is_triggered=case.trigger(state) is not None,
        is_over=waiting.needs_calm and not 0 < state.calm_since_ms <= waiting.since_ms,
        now_ms=case.now_ms,
    )
    return _outlook(case, approval, waiting, target, observe(waiting, sight))


def _outlook(
    case: Case,
    approval: Approval | None,
    waiting: WaitingPlan | None,
    target: Target | None,
    event: Event | None,
) -> Outlook:
    action = Action.PLAN if event is None else TABLE[Phase.AWAITING, event].action
    refusal = None
    if approval is not None and action is not Action.PUBLISH:
        is_old = case.now_ms - approval.at_ms >= case.rules.valid_for_ms
        # An old one was meant for tables that are gone, or for rules that asked for approval then: nothing is told, and
        # no later plan is published by it.
        if waiting is not None or not is_old:
            refusal = _refusal(approval, waiting, event, case.published)
    return Outlook(
        action=action,
        target=None if action is Action.PLAN else target,
        approval=approval,
        refusal=refusal,
    )


def unanswered(orders: Orders | None, state: GroupState, *, now_ms: int) -> Approval | None:
    """The newest approval, if no decision has answered it yet."""
    approval = orders.approval if orders is not None else None
    if approval is None or not is_new(approval.at_ms, answered_ms=state.approval_at_ms, now_ms=now_ms):
        return None
    return approval


def answered(state: GroupState, outlook: Outlook) -> GroupState:
    """The state once the approval has been answered, and the trigger that comes too late."""
    if outlook.missed_trigger_ms is not None:
        state = replace(state, triggered_at_ms=outlook.missed_trigger_ms)
    if outlook.approval is None:
        return state
    return replace(state, approval_at_ms=outlook.approval.at_ms)


def with_answers(decision: Decision, outlook: Outlook) -> Decision:
    """The decision, with the reasons why an approval is refused and a trigger is ignored added to its own."""
    decision = _with_refusal(decision, outlook)
    if outlook.missed_trigger_ms is None:
        return decision
    ignored = order_reasons.trigger_ignored(format_instant(outlook.missed_trigger_ms))
    return _with_reasons(decision, decision.reason, ignored)


def _with_refusal(decision: Decision, outlook: Outlook) -> Decision:
    if outlook.approval is None or outlook.refusal is None:
        return decision
    refused = order_reasons.approval_refused(outlook.approval.by, outlook.refusal)
    is_withdrawal = decision.sent is not None and decision.record is None
    texts = (decision.reason, refused) if is_withdrawal else (refused, decision.reason)
    return _with_reasons(decision, *texts)


def _with_reasons(decision: Decision, *texts: str | None) -> Decision:
    reason = "; ".join(text for text in texts if text)
    return replace(decision, verdict=Verdict(decided=decision.decided, reason=reason))


def proposed(
    case: Case, before: WaitingPlan | None, target: Target, *, needs_calm: bool = False
) -> WaitingPlan:
    """The plan that waits from now on, or goes on waiting when it was made again.

    Args:
        case: The group.
        before: What has waited so far.
        target: Of the plan.
        needs_calm: See `WaitingPlan`.

    Raises:
        ControlRecordTooLargeError: It could not be published.
    """
    is_same = before is not None and before.hashes == target.hashes
    return WaitingPlan(
        target=target.by_member,
        unassigned=target.unassigned,
        remarks=target.assignment.remarks,
        target_hash=target.target_hash,
        base_hash=target.base_hash,
        base_generation=case.facts.generation,
        since_ms=before.since_ms if before is not None and is_same else case.now_ms,
        valid_until_ms=case.sent(target).valid_until_ms,
        needs_calm=needs_calm,
    )


def awaiting(waiting: WaitingPlan, group_id: str) -> Verdict:
    """The verdict on a plan that waits."""
    reason = order_reasons.awaiting_approval(format_instant(waiting.since_ms), group_id)
    return Verdict(decided="awaiting_approval", reason="; ".join((reason, *waiting.remarks)))


def _target_of(case: Case, waiting: WaitingPlan) -> Target | None:
    """The target for the group as it is now; None when it does not fit the group or the rules any more."""
    placed = of_readers(case.group, waiting.target) if case.facts.is_kip848 else waiting.target
    try:
        assignment = assignment_of(case.group, placed, waiting.unassigned)
    except AssignorError:
        return None
    target = case.target(replace(assignment, remarks=waiting.remarks))
    return target if target.target_hash == waiting.target_hash else None


def _moves_pinned(case: Case, target: Target) -> bool:
    return bool((case.pinned & (target.assignment.member != case.group.owner)).any())


def _refusal(
    approval: Approval, waiting: WaitingPlan | None, event: Event | None, published: Published | None
) -> str:
    if waiting is not None and event is not None and approval.hashes == waiting.hashes:
        return _CAUSES[event]
    if published is not None and published.hashes == approval.hashes:
        return order_reasons.published_already(published.epoch)
    if waiting is None:
        return reasons.NOTHING_WAITS
    return order_reasons.other_plan_waits(approval.target_hash, waiting.target_hash)


_CAUSES = {
    Event.OTHER_PLAN: reasons.OVERTAKEN,
    Event.PINNED: reasons.NOW_PINNED,
    Event.MEMBERS_CHANGED: reasons.GROUP_CHANGED,
    Event.ARRIVED: reasons.AT_TARGET,
    Event.EXPIRED: reasons.EXPIRED_WAITING,
    Event.REBALANCED: reasons.REBALANCED_WAITING,
    Event.NEEDLESS: reasons.CALM_NO_MORE,
}
