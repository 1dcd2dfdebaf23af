"""The verdict on a target: whether anything speaks against publishing it, and what."""

from dataclasses import replace

from assignor.strategies.registry import strategy
from pipeline.planning import reasons
from pipeline.planning.effect import price, waiting
from pipeline.planning.effect.witnesses import is_needless
from pipeline.planning.guards import Proposal, guard_against
from pipeline.planning.life import answers
from pipeline.planning.life.next_state import on_confirmed
from pipeline.planning.problem.behind import behind_s
from pipeline.planning.problem.case import Case
from pipeline.planning.problem.improvement import NEVER_DRAINS, gain, headroom_lost
from pipeline.planning.problem.steps import evens_counts, moves_of
from pipeline.planning.state import GroupState
from pipeline.planning.values import Target, Verdict


def judged(case: Case, state: GroupState, target: Target) -> tuple[Verdict, GroupState]:
    """Return the verdict on the target, and the state with its confirmation counted or its trigger used."""
    unchanged = _why_unchanged(case, state, target)
    if unchanged is not None:
        # A trigger is answered by this reason: it publishes no later plan.
        return _not_now(unchanged, target), on_confirmed(_without_trigger(case, state), None)
    state = on_confirmed(state, target.base_hash)
    if target.moves and not is_out(case, state, target):
        if case.trigger(state) is not None:
            state = _without_trigger(case, state)
        elif (guard := _guard(case, state, target)) is not None:
            return _not_now(reasons.held_back(guard), target), state
    if case.rules.advice is not None:
        return Verdict(decided="advice", reason=case.rules.advice), state
    if case.rules.dry_run:
        return Verdict(decided="dry_run", reason=reasons.DRY_RUN), state
    return wanted_verdict(target), state


def _without_trigger(case: Case, state: GroupState) -> GroupState:
    triggered_ms = case.trigger(state)
    return state if triggered_ms is None else replace(state, triggered_at_ms=triggered_ms)


def wanted_verdict(target: Target) -> Verdict:
    """Return the verdict to publish the target, with the remarks of strategy and planner."""
    return Verdict(decided="publish", reason="; ".join(target.assignment.remarks) or None)


def _not_now(reason: str, target: Target) -> Verdict:
    return Verdict(decided="unchanged", reason="; ".join((reason, *target.assignment.remarks)))


def _why_unchanged(case: Case, state: GroupState, target: Target) -> str | None:
    """Return why there is nothing to publish; None if there is something."""
    published = case.published
    if not target.moves:
        return reasons.AT_TARGET
    if published is None:
        return None
    # Half of its life before a plan expires there is still time for the next one to be missed.
    is_young = published.valid_until_ms - case.now_ms > case.rules.valid_for_ms // 2
    has_news = state.plan is not None and state.plan.migration != case.rules.migration
    # Members of a KIP-848 group may lose an applied plan without a change of its hashes, which leave the epoch out.
    is_applied = state.plan is not None and state.plan.status == "applied"
    if published.hashes == target.hashes and is_young and not has_news and not is_applied:
        return reasons.still_current(published.epoch)
    return None


def must_be_replaced(case: Case, state: GroupState, target: Target) -> bool:
    """Return whether members must not follow the published plan although the group is at its target.

    Other members cannot follow a plan for absent ones, and it is useful when those return.
    """
    published, plan = case.published, state.plan
    if published is None or not published.is_valid(case.now_ms) or case.rules.dry_run:
        return False
    if plan is not None and plan.takes_back is not None and plan.status == "open":
        # Its partitions rest, so the strategy would leave them where they are.
        return False
    is_welcome = _is_for_others(case, state)
    return published.target_hash != target.target_hash and not is_welcome


def _is_for_others(case: Case, state: GroupState) -> bool:
    """Return whether members that have left the group had accepted the published plan."""
    plan, published = state.plan, case.published
    if plan is None or published is None or plan.epoch != published.epoch:
        return False
    return plan.is_restored and set(plan.target) != set(case.group.member_ids)


def _guard(case: Case, state: GroupState, target: Target) -> str | None:
    """The guard that holds the plan back and its cause; None if none does."""
    plan, migration, group = state.plan, case.rules.migration, case.group
    if plan is not None and answers.is_refused_for_migration(plan, group, case.facts):
        if migration != "disabled":
            return reasons.guard_migration(migration)
        # It had passed the guards, and migration, for which members refused it, is disabled now.
        if case.now_ms < plan.valid_until_ms:
            return None
    better = gain(group, group.owner, target.assignment.member)
    chosen = strategy(case.rules.strategy)
    proposal = Proposal(
        moves=int(moves_of(group, target.assignment.member).sum()),
        n_partitions=group.n_partitions,
        has_budget=chosen.has_budget,
        moves_whole=chosen.moves_whole,
        gain=better,
        evens_counts=better > NEVER_DRAINS
        and evens_counts(group, target.assignment.member, case.rules.options),
        lag=int(case.seen.backlog.sum()),
        lag_s=behind_s(case.group, case.partitions),
        headroom_lost=headroom_lost(group, group.owner, target.assignment.member),
    )
    why = waiting.why_waits(plan, case.seen)
    if why is None and is_needless(case.seen, plan, target.assignment.member):
        why = waiting.why_needless_waits(state, case.rules.guards, now_ms=case.now_ms)
    if why is not None:
        return why
    why = price.why_waits(state, case, target.assignment.member)
    if why is not None:
        return why
    return guard_against(proposal, case.rules.guards, state, now_ms=case.now_ms)


def is_out(case: Case, state: GroupState, target: Target) -> bool:
    """Return whether the newest plan on the control topic is the same, and members may still accept it."""
    is_over = state.plan is not None and state.plan.status in {"refused", "partly", "expired", "applied"}
    return case.published is not None and case.published.hashes == target.hashes and not is_over
