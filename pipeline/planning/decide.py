"""Decide about one group: publish a target, leave it as it is, or abstain, with the reason.

A pure function of the facts about the group, earlier decisions, and the time: the same input gives the same record,
byte for byte. `deciding` reads from top to bottom: can the group be planned (`eligibility`), what became of its
plan (`lifecycle`) and of one that waits (`approval`), what is wanted (`problem.wanted`), does anything speak against it
(`verdicts`), and what is sent.
"""

from collections.abc import Generator
from dataclasses import replace

from assignor.errors import AssignorError
from assignor.evaluation.validity import check
from pipeline.planning import broker_reasons, reasons
from pipeline.planning.broker_groups import (
    has_other_target,
    has_taken,
    is_loose,
    is_on_its_way,
    rules_of,
    seen,
    stuck_members,
)
from pipeline.planning.effect import judge, price
from pipeline.planning.effect.way_back import is_way_back, takes_back, way_back
from pipeline.planning.eligibility import (
    old_offsets,
    paused_reason,
    require_owned,
    require_plannable_group,
    why_old,
)
from pipeline.planning.facts import GroupFacts, PartitionFacts, Rules
from pipeline.planning.life import answers, approval, order_reasons
from pipeline.planning.life.lifecycle import Action, Sight, advance, ended, expired
from pipeline.planning.life.next_state import (
    on_answers,
    on_judged,
    on_observed,
    on_orders,
    on_pause,
    on_published,
    on_resent,
)
from pipeline.planning.problem.case import Case
from pipeline.planning.problem.evidence import Evidence, EvidenceAsked
from pipeline.planning.problem.fixed import pinned
from pipeline.planning.problem.group import posed
from pipeline.planning.problem.improvement import gain
from pipeline.planning.problem.measured import measured
from pipeline.planning.problem.wanted import wanted
from pipeline.planning.progress import PlanProgress, progress_of
from pipeline.planning.state import GroupState, PlanState
from pipeline.planning.values import Decision, Published, Sent, Target, Verdict, next_epoch
from pipeline.planning.verdicts import is_out, judged, must_be_replaced, wanted_verdict


def deciding(
    facts: GroupFacts,
    partitions: PartitionFacts,
    rules: Rules,
    published: Published | None,
    state: GroupState,
    *,
    now_ms: int,
) -> Generator[EvidenceAsked, Evidence, Decision]:
    """Decide what to do about the group now; asks for its evidence, at most once.

    Args:
        facts: The group's newest record, with acknowledgements and orders.
        partitions: Every partition of the topics it subscribes to.
        rules: From the configuration.
        published: The newest plan of the group on the control topic, if there is one.
        state: What the decision before this one remembered.
        now_ms: Time of the decision, ms since the epoch.
    """
    rules = rules_of(facts, rules)
    state = on_pause(state, unseen_ms=rules.unseen_ms, now_ms=now_ms)
    state = on_orders(seen(state, facts, now_ms=now_ms), facts.orders, now_ms=now_ms)
    paused = paused_reason(facts)
    if paused is not None:
        # It was made for lag that is gone by the time the group is planned again.
        state = replace(state, waiting=None)
    halted = paused or facts.mistakable
    # For a driver that publishes nothing, a plan that its tables do not have may be another driver's.
    is_ours = published is not None and (published.is_known or not rules.dry_run)
    if halted is not None and published is not None and is_ours and published.is_valid(now_ms):
        return _withdrawn(facts, rules, published, state, why=halted, now_ms=now_ms)
    try:
        require_plannable_group(facts, rules, on_its_way=is_on_its_way(facts, state.plan))
        require_owned(facts, partitions)
        old = old_offsets(facts, partitions, rules, now_ms=now_ms)
        problem, state = yield from posed(
            facts, partitions, rules, state, cold_ms=price.cold_ms(state, now_ms=now_ms), now_ms=now_ms
        )
        group = problem.group
        case = Case(
            facts=facts,
            rules=rules,
            group=group,
            beliefs=problem.beliefs,
            seen=measured(group, partitions, problem.backlog, old),
            standing=problem.standing,
            resumed=problem.resumed,
            cost=problem.cost,
            pinned=pinned(group, rules.guards.pin, facts.orders.pinned if facts.orders is not None else {}),
            old=old,
            why_old=why_old(partitions, rules, now_ms=now_ms) if old.any() else None,
            partitions=partitions,
            published=published,
            now_ms=now_ms,
        )
        return _decided(case, state)
    except AssignorError as error:
        plan = expired(state.plan, answers.refusal(state.plan, facts), now_ms=now_ms)
        return _abstained(facts, rules, replace(state, plan=plan), str(error))


def _abstained(facts: GroupFacts, rules: Rules, state: GroupState, why: str) -> Decision:
    return Decision(
        strategy=rules.strategy,
        base_generation=facts.generation,
        verdict=Verdict(decided="abstain", reason=why),
        plan=state.plan,
        state=state,
    )


def _decided(case: Case, state: GroupState) -> Decision:
    """Act as the newest plan's life requires, or make a new plan; withdraw an ended plan that members would follow."""
    decision, published = _by_its_life(case, state), case.published
    # Where plans are advice, the record may be one for a classic group, which the broker passes over.
    is_for_broker = case.facts.is_kip848 and case.rules.advice is None
    if not is_for_broker or published is None or decision.decided == "publish":
        return decision
    plan = decision.state.plan
    if plan is None or not is_loose(plan, published, now_ms=case.now_ms):
        return decision
    return _withdrawn(
        case.facts, case.rules, published, decision.state, why=plan.why or "", now_ms=case.now_ms
    )


def _by_its_life(case: Case, state: GroupState) -> Decision:
    state, action, progress = _looked_at(case, state)
    try:
        return _acted(case, state, action, progress)
    except AssignorError as error:
        # Nothing can be published, but this look may have shown that the plan hurts: keep its state.
        return _abstained(case.facts, case.rules, state, str(error))


def _acted(case: Case, state: GroupState, action: Action, progress: PlanProgress | None) -> Decision:
    may_move_pinned = _may_move_pinned(case)
    if (action is Action.WITHDRAW or may_move_pinned) and case.published is not None:
        why = reasons.MAY_MOVE_PINNED if may_move_pinned else _why_withdrawn(case, state, progress)
        return _withdrawn(case.facts, case.rules, case.published, state, why=why, now_ms=case.now_ms)
    if case.facts.is_between_targets:
        return _on_its_way(case, state, action, progress)
    outlook = approval.look_at(case, state, is_overtaken=action is not Action.PLAN)
    state = approval.answered(state, outlook)
    if state.plan is None or progress is None or action is Action.PLAN:
        decision = _proposed(case, state, outlook)
    else:
        decision = _continued(case, replace(state, waiting=None), state.plan, action, progress)
    return approval.with_answers(decision, outlook)


def _why_withdrawn(case: Case, state: GroupState, progress: PlanProgress | None) -> str:
    if _is_pinned(case, progress):
        return reasons.NOW_PINNED
    return (state.plan.why if state.plan is not None else None) or ""


def _proposed(case: Case, state: GroupState, outlook: approval.Outlook) -> Decision:
    """The plan that waits, published if it is approved, or else a new one."""
    target, approved, waiting = outlook.target, outlook.approval, state.waiting
    if target is None or waiting is None:
        return _sent_back(case, state) or _planned(case, state)
    if outlook.action is Action.WAIT or approved is None:
        return case.decision(state, target, approval.awaiting(waiting, case.facts.group_id))
    verdict = Verdict(decided="publish", reason=order_reasons.approved(approved.by, approved.reason))
    if is_way_back(state, case.group, target):
        state = price.on_way_back(state, now_ms=case.now_ms)
    return _published(case, replace(state, waiting=None), target, verdict, approved_by=approved.by)


def _sent_back(case: Case, state: GroupState) -> Decision | None:
    """Return the target that restores the group to where it was before plans; None without a reason to."""
    assignment = way_back(case, state)
    if assignment is None:
        return None
    check(case.group, assignment)
    target = case.target(assignment)
    if case.rules.needs_approval:
        is_way_home = takes_back(state.plan, case.group, target) is None
        needs_calm = is_way_home and not price.is_expensive(state, now_ms=case.now_ms)
        waiting = approval.proposed(case, state.waiting, target, needs_calm=needs_calm)
        state = replace(state, waiting=waiting)
        return case.decision(state, target, approval.awaiting(waiting, case.facts.group_id))
    return _published(case, price.on_way_back(state, now_ms=case.now_ms), target, wanted_verdict(target))


def _on_its_way(case: Case, state: GroupState, action: Action, progress: PlanProgress | None) -> Decision:
    """The broker is about to apply the newest plan, or something else: nothing is planned before it has."""
    plan = state.plan
    if plan is None or progress is None or action is not Action.WAIT:
        return _abstained(case.facts, case.rules, state, reasons.not_stable(case.facts.state))
    return case.decision(
        state, case.target(progress.target), Verdict(decided="unchanged", reason=_waits(case, plan, progress))
    )


def _waits(case: Case, plan: PlanState, progress: PlanProgress) -> str:
    """Why nothing is planned while the newest plan is under way."""
    made = max(progress.done, 0)
    if not case.facts.is_kip848:
        return reasons.waiting(plan.epoch, plan.is_adopted, made, progress.moves)
    stuck = stuck_members(case.facts)
    if stuck:
        return broker_reasons.waiting_stuck(plan.epoch, made, progress.moves, stuck[0])
    return broker_reasons.waiting(plan.epoch, made, progress.moves, is_taken=plan.is_adopted)


def _continued(
    case: Case, state: GroupState, plan: PlanState, action: Action, progress: PlanProgress
) -> Decision:
    """Return the action that the life of the newest published plan requires."""
    if action is Action.WAIT:
        verdict = Verdict(decided="unchanged", reason=_waits(case, plan, progress))
        return case.decision(state, case.target(progress.target), verdict)
    if action is Action.RESEND:
        return _resent(case, state, plan, progress)
    return _returned(case, state, plan, progress) if action is Action.RETURN else _planned(case, state)


def _looked_at(case: Case, state: GroupState) -> tuple[GroupState, Action, PlanProgress | None]:
    """The state with what became of the newest plan, what may be done now, and the progress towards its target."""
    plan = state.plan
    if plan is None:
        return price.with_price(state, case), Action.PLAN, None
    progress = progress_of(case.group, plan, by_broker=case.facts.is_kip848)
    sight = Sight(
        progress=progress,
        generation=case.facts.generation,
        is_on_topic=_is_on_topic(case, plan),
        is_pinned=_is_pinned(case, progress),
        accepted=bool(answers.accepting(plan, case.facts)) or has_taken(case.facts, plan),
        refusal=answers.refusal(plan, case.facts),
        silent=answers.silent(plan, case.facts, settle_ms=case.rules.guards.settle_ms, now_ms=case.now_ms),
        migration=case.rules.migration,
        is_reconciling=case.facts.is_between_targets,
        is_stuck=bool(stuck_members(case.facts)),
        has_other_target=has_other_target(case.facts, plan),
        is_by_broker=case.facts.is_kip848,
        follows_within=answers.follows_within_generation(case.facts),
        now_ms=case.now_ms,
        valid_for_ms=case.rules.valid_for_ms,
    )
    after, action = advance(plan, sight)
    # A member that stood still could not answer; that does not mean that it does not follow.
    answered = answers.answered(plan, case.facts) | case.resumed
    state = on_answers(state, silent=sight.silent, answered=answered, now_ms=case.now_ms)
    state = on_observed(state, after, progress, case.seen, now_ms=case.now_ms)
    state = on_judged(
        judge.observed(state, case.seen, now_ms=case.now_ms), case.rules.guards, now_ms=case.now_ms
    )
    return price.with_price(state, case), _permitted(case, after, action, progress), progress


def _permitted(case: Case, plan: PlanState, action: Action, progress: PlanProgress | None) -> Action:
    """The action, or to plan where it is not possible or the rules do not allow it."""
    if action is Action.WITHDRAW:
        is_valid = case.published is not None and case.published.is_valid(case.now_ms)
        return action if is_valid else Action.PLAN
    # A target that was approved may be published again; one that nobody was asked about may not.
    needs_approval = case.rules.needs_approval and plan.approved_by is None
    is_to_be_sent = action in {Action.RETURN, Action.RESEND}
    if case.rules.dry_run or progress is None or (is_to_be_sent and needs_approval):
        return Action.PLAN
    return action


def _is_on_topic(case: Case, plan: PlanState) -> bool:
    published = case.published
    # A plan without a hash was decided, and never sent.
    return published is not None and published.epoch == plan.epoch and published.is_known


def _is_pinned(case: Case, progress: PlanProgress | None) -> bool:
    """Return whether the plan moves a pinned partition, or may do so once its own members are back."""
    if progress is None:
        orders = case.facts.orders
        return orders is not None and bool(orders.pinned)
    return bool((case.pinned & (progress.target.member != case.group.owner)).any())


def _may_move_pinned(case: Case) -> bool:
    """Return whether partitions are pinned, and the valid plan on the control topic is unknown, so may move them."""
    published = case.published
    is_unknown = published is not None and published.is_valid(case.now_ms) and not published.is_known
    return is_unknown and not case.rules.dry_run and bool(case.pinned.any())


def _returned(case: Case, state: GroupState, plan: PlanState, progress: PlanProgress) -> Decision:
    """Bring the group back to the target that its members have taken, if by its own figures that helps, or plan."""
    if not plan.is_restored or plan.is_unseen:
        return _planned(case, state)
    better = gain(case.group, case.group.owner, progress.target.member)
    if better > 0 or (better == 0 and case.rules.guards.min_improvement == 0):
        return _resent(case, state, plan, progress)
    plan = ended(plan, "superseded", reasons.HELPS_NO_LONGER, now_ms=case.now_ms)
    return _planned(case, replace(state, plan=replace(plan, is_dropped=True)))


def _resent(case: Case, state: GroupState, plan: PlanState, progress: PlanProgress) -> Decision:
    """Publish the same target under the next epoch, based on the group as it is now."""
    target = case.target(progress.target)
    sent = case.sent(target)
    published = case.publication(target, sent)
    after = on_resent(state, plan, published, case.seen, done=max(progress.done, 0))
    return replace(case.decision(after, target, Verdict(decided="publish"), sent=sent), plan=plan)


def _planned(case: Case, state: GroupState) -> Decision:
    """Ask the strategy for a target, and publish it unless something speaks against it."""
    before = state.waiting
    if before is not None:
        state = replace(state, waiting=None)
    case, assignment = wanted(case, state)
    target = case.target(assignment)
    if not target.moves and must_be_replaced(case, state, target) and case.published is not None:
        # Members that follow it would move what is where it should be.
        why = reasons.OTHERWISE_AT_TARGET
        return _withdrawn(case.facts, case.rules, case.published, state, why=why, now_ms=case.now_ms)
    verdict, state = judged(case, state, target)
    if verdict.decided == "publish" and _needs_approval(case, state, target):
        waiting = approval.proposed(case, before, target)
        verdict = approval.awaiting(waiting, case.facts.group_id)
        state = replace(state, waiting=waiting)
    if verdict.decided != "publish":
        return case.decision(state, target, verdict)
    return _published(case, state, target, verdict)


def _needs_approval(case: Case, state: GroupState, target: Target) -> bool:
    """Return whether an operator must approve the target; not again while the approved one is on the control topic."""
    is_approved = state.plan is not None and state.plan.approved_by is not None
    return case.rules.needs_approval and not (is_approved and is_out(case, state, target))


def _published(
    case: Case, state: GroupState, target: Target, verdict: Verdict, *, approved_by: str | None = None
) -> Decision:
    """Publish the target."""
    sent, plan = case.sent(target), state.plan
    published = case.publication(target, sent, approved_by=approved_by)
    if plan is not None and is_out(case, state, target):
        # Members that look at it only at their next rebalance must find one that is valid.
        plan = replace(plan, valid_until_ms=sent.valid_until_ms)
        after = on_resent(state, plan, published, case.seen, done=plan.done)
        return case.decision(after, target, verdict, sent=sent)
    if plan is not None:
        plan = ended(plan, "superseded", reasons.replaced_by(sent.epoch), now_ms=case.now_ms)
        state = replace(state, plan=plan)
    after = on_published(state, published, case.seen, case.rules.guards) if target.moves else state
    return replace(case.decision(after, target, verdict, sent=sent), plan=plan)


def _withdrawn(
    facts: GroupFacts, rules: Rules, published: Published, state: GroupState, *, why: str, now_ms: int
) -> Decision:
    """Return the decision to withdraw the published plan; partitions stay where they are."""
    why = reasons.withdrawn(why)
    state = replace(state, waiting=None)
    if state.plan is not None:
        # Nothing brings it back: it was made for lag that is gone by then.
        plan = replace(ended(state.plan, "superseded", why, now_ms=now_ms), is_dropped=True)
        state = replace(state, plan=plan)
    return Decision(
        strategy=rules.strategy,
        base_generation=facts.generation,
        verdict=Verdict(decided="publish", reason=why),
        sent=Sent(epoch=next_epoch(published, least=rules.least_epoch), record=None, valid_until_ms=now_ms),
        plan=state.plan,
        state=state,
    )
