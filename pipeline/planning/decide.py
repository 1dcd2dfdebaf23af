"""Decide about one group: publish a target, leave it as it is, or abstain, and say why.

A pure function of what is known of the group, what was decided before, and the time: the same facts give the same
record, byte for byte.
"""

import hashlib
import json
import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from assignor.errors import AssignorError
from assignor.evaluation.drain.bound import lower_bound_s
from assignor.evaluation.drain.time import drain_s, lag_imbalance
from assignor.evaluation.validity import check
from assignor.model.arrays import Bools
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.registry import strategy
from pipeline.planning import reasons
from pipeline.planning.eligibility import paused_reason, require_fresh_offsets, require_plannable_group
from pipeline.planning.facts import Decision, GroupFacts, PartitionFacts, Published, Rules
from pipeline.planning.frozen import cooling_down, frozen_limits, pinned
from pipeline.planning.group import to_group
from pipeline.planning.guards import guard_against
from pipeline.planning.next_state import on_confirmed, on_outcome, on_published, on_republished
from pipeline.planning.outcome import expired, is_refused_for_migration, outcome_of, superseded
from pipeline.planning.progress import PlanProgress, progress_of
from pipeline.planning.record import (
    group_moves,
    ranges_by_member,
    revoked_ranges,
    to_record,
    unassigned_ranges,
)
from pipeline.planning.state import GroupState, PlanState

_TRIGGER_LIVES_MS = 600_000
"""An older trigger was meant for a driver that has ended since."""
_FOLLOWED_WITHIN = frozenset({"range", "roundrobin"})
"""Assignors of groups that may follow within a generation; the members of other groups do not look at migration."""


def decide(
    facts: GroupFacts,
    partitions: PartitionFacts,
    rules: Rules,
    published: Published | None,
    state: GroupState,
    *,
    now_ms: int,
) -> Decision:
    """Decide what to do about the group now.

    A plan that members have begun to apply is finished: its target stands until the group has reached it, the plan
    expires, or the group's members change, and it is republished at once for each new generation. Otherwise a plan
    is published when its target or its base differs from those of the newest published plan, unless a guard holds
    it back, and again before that one expires. A group that has its target already, with no other plan published,
    is left alone. A published plan is withdrawn when the group is paused or a partition that it moves is pinned:
    that is a decision to publish without a record.

    Args:
        facts: The group's newest record, with acknowledgements and orders.
        partitions: Every partition of the topics it subscribes to.
        rules: From the configuration.
        published: The newest plan of the group on the control topic, if there is one.
        state: What the decision before this one remembered.
        now_ms: Time of the decision, ms since the epoch.
    """
    state = state.seen(facts.generation, now_ms)
    paused = paused_reason(facts)
    if paused is not None and published is not None and now_ms < published.valid_until_ms:
        return _withdrawn(facts, rules, published, state, why=paused, now_ms=now_ms)
    try:
        require_plannable_group(facts, rules)
        require_fresh_offsets(facts, partitions, rules, now_ms=now_ms)
        group = to_group(facts, partitions, rules)
        case = _Case(
            facts=facts,
            rules=rules,
            group=group,
            pinned=pinned(group, rules.guards.pin, facts.orders.pinned if facts.orders is not None else {}),
            lag_age_s=_oldest(partitions),
            published=published,
            now_ms=now_ms,
        )
        state, progress = _with_outcome(case, state)
        if _is_against_pin(case, state, progress):
            return _ended_by_pin(case, state, left=progress.left if progress is not None else ())
        return _continue(case, state, progress)
    except AssignorError as error:
        plan = expired(state.plan, facts, now_ms=now_ms) if state.plan else None
        return Decision(
            decided="abstain",
            reason=str(error),
            strategy=rules.strategy,
            base_generation=facts.generation,
            plan=plan,
            state=replace(state, plan=plan),
        )


def _withdrawn(
    facts: GroupFacts, rules: Rules, published: Published, state: GroupState, *, why: str, now_ms: int
) -> Decision:
    """The decision to withdraw the published plan; members stay where they are."""
    why = reasons.withdrawn(why)
    if state.plan is not None:
        state = on_outcome(state, superseded(state.plan, why, now_ms=now_ms))
    return Decision(
        decided="publish",
        reason=why,
        strategy=rules.strategy,
        epoch=published.epoch + 1,
        base_generation=facts.generation,
        # The hash of no group: whatever is published next is a different plan.
        base_hash="",
        target_hash="",
        valid_until_ms=now_ms,
        plan=state.plan,
        state=state,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Case:
    """One group that can be planned, and everything that its decision depends on."""

    facts: GroupFacts
    rules: Rules
    group: Group
    pinned: Bools
    """P entries: see `frozen.pinned`."""
    lag_age_s: float
    """Age of the oldest unread record; nan if unknown."""
    published: Published | None
    now_ms: int

    @property
    def valid_until_ms(self) -> int:
        """When a record that is published now expires."""
        return self.now_ms + self.rules.valid_for_ms


def _oldest(partitions: PartitionFacts) -> float:
    known = partitions.lag_age_s[~np.isnan(partitions.lag_age_s)]
    return float(known.max()) if len(known) else math.nan


def _with_outcome(case: _Case, state: GroupState) -> tuple[GroupState, PlanProgress | None]:
    """The state with the outcome of the newest plan, and the group's progress towards its target."""
    plan = state.plan
    if plan is None:
        return state, None
    # A plan without a hash was decided, and never sent.
    if case.published is None or case.published.epoch != plan.epoch or not case.published.target_hash:
        return on_outcome(state, superseded(plan, reasons.OTHER_PLAN_PUBLISHED, now_ms=case.now_ms)), None
    progress = progress_of(case.group, plan)
    plan = outcome_of(plan, progress, case.group, case.facts, now_ms=case.now_ms)
    return on_outcome(state, plan, left=progress.left if progress is not None else ()), progress


def _is_against_pin(case: _Case, state: GroupState, progress: PlanProgress | None) -> bool:
    """Whether the newest plan moves a pinned partition, or may do so once its own members are the group again."""
    if progress is not None:
        return bool((case.pinned & (progress.target.member != case.group.owner)).any())
    orders = case.facts.orders
    return orders is not None and bool(orders.pinned) and _is_put_off(case, state)


def _ended_by_pin(case: _Case, state: GroupState, *, left: Collection[str]) -> Decision:
    """Withdraw the published plan, or plan again if it is not valid any more."""
    why, now_ms = reasons.NOW_PINNED, case.now_ms
    if state.plan is not None:
        # Unpinning does not bring it back either: it was made for lag that is gone by then.
        plan = replace(superseded(state.plan, why, now_ms=now_ms), is_left=True)
        state = on_outcome(state, plan, left=left)
    if case.published is not None and now_ms < case.published.valid_until_ms:
        return _withdrawn(case.facts, case.rules, case.published, state, why=why, now_ms=now_ms)
    return _replan(case, state)


def _continue(case: _Case, state: GroupState, progress: PlanProgress | None) -> Decision:
    """Finish the plan that is under way, or plan again."""
    plan = state.plan
    if plan is None or progress is None or case.rules.dry_run:
        return _replan(case, state)
    is_rebalanced = case.facts.generation != plan.base_generation and not progress.is_between
    is_undone = is_rebalanced and plan.is_restored and not progress.is_there
    if is_undone or _is_news_of_migration(case, plan, progress):
        return _republish(case, state, plan, progress)
    if progress.is_there or plan.status != "open":
        return _replan(case, state)
    # Half of its life before a plan expires there is still time for the next one to be missed.
    is_old = 2 * (plan.valid_until_ms - case.now_ms) <= case.rules.valid_for_ms
    if is_old and not plan.is_adopted:
        return _replan(case, state)
    # While a partition is between two members, no follower has what a publication would start from.
    if is_old and plan.done > plan.done_then and not progress.is_between:
        return _republish(case, state, plan, progress)
    if plan.is_adopted:
        reason = reasons.under_way(plan.epoch, max(progress.done, 0), progress.moves)
    else:
        reason = reasons.not_accepted_yet(plan.epoch)
    return replace(_figures(case, progress.target), reason=reason, plan=plan, state=state)


def _is_news_of_migration(case: _Case, plan: PlanState, progress: PlanProgress) -> bool:
    """Whether members have to learn that `migration` differs from the plan's newest publication.

    An applied plan is republished only when migration has become possible: hand-overs must then be undone.
    """
    now = case.rules.migration
    is_ours = case.facts.assignor in _FOLLOWED_WITHIN
    if now == plan.migration or not is_ours or progress.is_between:
        return False
    return plan.status == "open" or (now == "possible" and plan.is_restored)


def _republish(case: _Case, state: GroupState, plan: PlanState, progress: PlanProgress) -> Decision:
    """Publish the same target under the next epoch, based on the group as it is now."""
    decision = _published(case, _figures(case, progress.target), progress.target)
    has_moved = plan.status == "applied" or plan.done > plan.done_then
    until_ms = case.valid_until_ms if has_moved else plan.valid_until_ms
    state = on_republished(state, plan, decision, done=max(progress.done, 0), valid_until_ms=until_ms)
    return replace(decision, plan=plan, state=state)


def _replan(case: _Case, state: GroupState) -> Decision:
    """Ask the strategy for a target, and publish it unless something speaks against it."""
    case, target = _target(case, state)
    decision = _figures(case, target)
    reason = _why_unchanged(case, state, decision)
    if reason is not None:
        state = on_confirmed(state, None)
    else:
        state = on_confirmed(state, decision.base_hash)
        reason, state = _why_held_back(case, state, decision, target)
    decision = replace(decision, plan=state.plan, state=state)
    if reason is not None:
        return replace(decision, reason="; ".join((reason, *target.remarks)))
    if case.rules.dry_run:
        return replace(decision, decided="dry_run", reason=reasons.DRY_RUN)
    decision = _published(case, decision, target)
    plan = state.plan
    if plan is not None and _is_out(case, state, decision):
        state = on_republished(state, plan, decision, done=plan.done, valid_until_ms=case.valid_until_ms)
        return replace(decision, state=state)
    if plan is not None:
        plan = superseded(plan, reasons.replaced_by(decision.epoch), now_ms=case.now_ms)
    state = replace(state, plan=plan)
    if decision.moves:
        state = on_published(state, decision, case.group, case.rules.guards, now_ms=case.now_ms)
    return replace(decision, plan=plan, state=state)


def _why_held_back(
    case: _Case, state: GroupState, decision: Decision, target: Assignment
) -> tuple[str | None, GroupState]:
    """The guard that holds the plan back; none holds back one that is published already, or triggered."""
    if not decision.moves or _is_out(case, state, decision):
        return None, state
    triggered_ms = _trigger(case, state)
    if triggered_ms is not None:
        return None, replace(state, triggered_at_ms=triggered_ms)
    plan, migration = state.plan, case.rules.migration
    if plan is not None and is_refused_for_migration(plan, case.group, case.facts):
        if migration != "disabled":
            return reasons.held_back(reasons.guard_migration(migration)), state
        # It had passed the guards, and migration, for which members refused it, is disabled now.
        if case.now_ms < plan.valid_until_ms:
            return None, state
    guard = guard_against(
        case.group, target, case.rules.guards, state, lag_age_s=case.lag_age_s, now_ms=case.now_ms
    )
    return (reasons.held_back(guard) if guard else None), state


def _trigger(case: _Case, state: GroupState) -> int | None:
    """Time of a trigger that no plan has used yet."""
    orders = case.facts.orders
    at_ms = orders.triggered_at_ms if orders is not None else None
    is_new = at_ms is not None and at_ms > state.triggered_at_ms and case.now_ms - at_ms < _TRIGGER_LIVES_MS
    return at_ms if is_new else None


def _target(case: _Case, state: GroupState) -> tuple[_Case, Assignment]:
    """The strategy's answer, and the case in which frozen partitions are fixed, as the strategy saw it."""
    rules = case.rules
    resting = cooling_down(case.group, rules.guards, state, now_ms=case.now_ms) & ~case.pinned
    frozen = case.pinned | resting
    group = replace(case.group, fixed=frozen if frozen.any() else None)
    chosen = strategy(rules.strategy)
    options = dict(rules.options)
    if any(option.name == "max_moves" for option in chosen.options):
        options.setdefault("max_moves", rules.guards.most_moves(group.n_partitions))
    target = chosen.assign(group, options)
    check(group, target)
    if frozen.any() and (not chosen.reads_lag or frozen_limits(group, target)):
        remark = reasons.frozen(int(case.pinned.sum()), int(resting.sum()))
        target = replace(target, remarks=(*target.remarks, remark))
    return replace(case, group=group), target


def _figures(case: _Case, target: Assignment) -> Decision:
    """A target with its figures; nothing is decided about it yet."""
    facts, rules, group = case.facts, case.rules, case.group
    base = ranges_by_member(group, group.ownership.holder)
    wanted, unassigned = ranges_by_member(group, target.member), unassigned_ranges(group, target)
    subscribed = sorted((member.member_id, *sorted(member.topics)) for member in facts.members)
    return Decision(
        decided="unchanged",
        strategy=rules.strategy,
        base_generation=facts.generation,
        base_hash=_hash([facts.generation, facts.assignor, base, subscribed]),
        target_hash=_hash([rules.strategy, wanted, unassigned]),
        assignment=wanted,
        moves=group_moves(group, target),
        revoked=revoked_ranges(group, target),
        unassigned=unassigned,
        # A consumer drops partitions of topics that it does not subscribe to: nobody drains them.
        drain_s_before=_finite(drain_s(group, group.owner)),
        drain_s_after=_finite(drain_s(group, target.member)),
        drain_s_bound=_finite(lower_bound_s(group)),
        imbalance_before=lag_imbalance(group, group.owner),
        imbalance_after=lag_imbalance(group, target.member),
    )


def _published(case: _Case, decision: Decision, target: Assignment) -> Decision:
    """The decision to publish the target, with its control record."""
    decision = replace(
        decision,
        decided="publish",
        reason=None,
        epoch=(case.published.epoch if case.published else 0) + 1,
        migration=case.rules.migration,
        valid_until_ms=case.valid_until_ms,
    )
    record = to_record(case.facts, case.rules, case.group, target, decision, now_ms=case.now_ms)
    return replace(decision, record=record)


def _is_out(case: _Case, state: GroupState, decision: Decision) -> bool:
    """Whether the newest plan on the control topic is the same, and members may still accept it."""
    is_over = state.plan is not None and state.plan.status in {"refused", "partly", "expired"}
    return case.published is not None and _hashes(case.published) == _hashes(decision) and not is_over


def _why_unchanged(case: _Case, state: GroupState, decision: Decision) -> str | None:
    """Why there is nothing to publish; None when there is."""
    published, now_ms = case.published, case.now_ms
    if published is None:
        return None if decision.moves else reasons.AT_TARGET
    if not decision.moves and (
        published.valid_until_ms <= now_ms or published.target_hash == decision.target_hash
    ):
        return reasons.AT_TARGET
    if not decision.moves and _is_put_off(case, state):
        return reasons.kept_for_other_members(published.epoch)
    # A different target that is still valid must not be followed: it is replaced, even when nothing has to move.
    # Half of its life before a plan expires there is still time for the next one to be missed.
    is_young = published.valid_until_ms - now_ms > case.rules.valid_for_ms // 2
    has_news = state.plan is not None and state.plan.migration != case.rules.migration
    if _hashes(published) == _hashes(decision) and is_young and not has_news:
        return reasons.still_current(published.epoch)
    return None


def _is_put_off(case: _Case, state: GroupState) -> bool:
    """Whether the published plan was accepted by other members, for whom it is republished when they return."""
    plan, published = state.plan, case.published
    if plan is None or published is None or case.rules.dry_run or published.valid_until_ms <= case.now_ms:
        return False
    is_out = plan.is_restored and plan.epoch == published.epoch
    return is_out and set(plan.target) != set(case.group.member_ids)


def _hashes(plan: Decision | Published) -> tuple[str | None, str | None]:
    return plan.target_hash, plan.base_hash


def _finite(seconds: float | None) -> float | None:
    return seconds if seconds is not None and math.isfinite(seconds) else None


def _hash(content: object) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
