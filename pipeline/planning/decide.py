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
from pipeline.planning.eligibility import pause_in_words, refuse_data, refuse_group
from pipeline.planning.facts import Decision, GroupFacts, PartitionFacts, Published, Rules
from pipeline.planning.frozen import kept, pinned, resting
from pipeline.planning.group import to_group
from pipeline.planning.guards import held_back
from pipeline.planning.next_state import continued, counted, judged, started
from pipeline.planning.outcome import expired, is_refused_for_migration, progress, superseded
from pipeline.planning.record import given_ranges, group_moves, ranges_by_member, to_record, unassigned_ranges
from pipeline.planning.state import GroupState, PlanState
from pipeline.planning.target import Way, way_of

_TRIGGER_LIVES_MS = 600_000
"""A manual trigger that is older was meant for a driver that is gone."""
_FOLLOWED_WITHIN = frozenset({"range", "roundrobin"})
"""Assignors of groups that may follow within a generation; those of other groups do not ask for migration."""


def decide(
    facts: GroupFacts,
    partitions: PartitionFacts,
    rules: Rules,
    published: Published | None,
    state: GroupState,
    *,
    now_ms: int,
) -> Decision:
    """What to do about the group now.

    A plan that members have begun to apply is finished: its target stands until the group is there, its time is
    over, or other members make it void, and it is published again for each new generation, at once. Otherwise a
    plan is published when its target or the base it starts from is another than that of the newest published
    plan, unless a guard holds it back, and again before that one expires. A group that has its target already,
    with no other plan out, is left alone. A plan that is out when the group is paused, or when a partition is pinned
    that it would move, is withdrawn: that is published as a decision without a record.

    Args:
        facts: The group's newest record, and what its members and operators say.
        partitions: Every partition of the topics it subscribes to.
        rules: What the configuration wants.
        published: The newest plan of the group on the control topic, if there is one.
        state: What the decision before this one left.
        now_ms: Time of the decision, ms since the epoch.
    """
    state = state.seen(facts.generation, now_ms)
    paused = pause_in_words(facts)
    if paused is not None and published is not None and now_ms < published.valid_until_ms:
        return _withdrawn(facts, rules, published, state, why=paused, now_ms=now_ms)
    try:
        refuse_group(facts, rules)
        refuse_data(facts, partitions, rules, now_ms=now_ms)
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
        state, way = _followed(case, state)
        if _is_against_pin(case, state, way):
            return _ended_by_pin(case, state, left=way.left if way is not None else ())
        return _continue(case, state, way)
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
    """The decision to take back what is out; members stay where they are."""
    why = f"withdrawn: {why}"
    if state.plan is not None:
        state = judged(state, superseded(state.plan, why, now_ms=now_ms))
    return Decision(
        decided="publish",
        reason=why,
        strategy=rules.strategy,
        epoch=published.epoch + 1,
        base_generation=facts.generation,
        # Of no group: whatever comes after it is another plan.
        base_hash="",
        target_hash="",
        valid_until_ms=now_ms,
        plan=state.plan,
        state=state,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Case:
    """One group that can be planned, and all that is known of it."""

    facts: GroupFacts
    rules: Rules
    group: Group
    pinned: Bools
    """P entries: see `frozen.pinned`."""
    lag_age_s: float
    """Age of the oldest record that waits; nan if not known."""
    published: Published | None
    now_ms: int

    @property
    def valid_until_ms(self) -> int:
        """Of what is published now."""
        return self.now_ms + self.rules.valid_for_ms


def _oldest(partitions: PartitionFacts) -> float:
    known = partitions.lag_age_s[~np.isnan(partitions.lag_age_s)]
    return float(known.max()) if len(known) else math.nan


def _followed(case: _Case, state: GroupState) -> tuple[GroupState, Way | None]:
    """The state with what became of the newest plan, and where the group is on its way to that target."""
    plan = state.plan
    if plan is None:
        return state, None
    # Without a hash it was decided, and never sent.
    if case.published is None or case.published.epoch != plan.epoch or not case.published.target_hash:
        why = "the control topic holds another plan"
        return judged(state, superseded(plan, why, now_ms=case.now_ms)), None
    way = way_of(case.group, plan)
    plan = progress(plan, way, case.group, case.facts, now_ms=case.now_ms)
    return judged(state, plan, left=way.left if way is not None else ()), way


def _is_against_pin(case: _Case, state: GroupState, way: Way | None) -> bool:
    """Whether the newest plan moves a partition that is pinned, or may do so once its members are alone again."""
    if way is not None:
        return bool((case.pinned & (way.target.member != case.group.owner)).any())
    orders = case.facts.orders
    return orders is not None and bool(orders.pinned) and _is_put_off(case, state)


def _ended_by_pin(case: _Case, state: GroupState, *, left: Collection[str]) -> Decision:
    """Take back the plan that is out, or plan anew where it is out no more."""
    why, now_ms = "partitions that it moves were pinned since", case.now_ms
    if state.plan is not None:
        # Without the pin it would not come back either: it was made for lag that is gone by then.
        plan = replace(superseded(state.plan, why, now_ms=now_ms), is_left=True)
        state = judged(state, plan, left=left)
    if case.published is not None and now_ms < case.published.valid_until_ms:
        return _withdrawn(case.facts, case.rules, case.published, state, why=why, now_ms=now_ms)
    return _anew(case, state)


def _continue(case: _Case, state: GroupState, way: Way | None) -> Decision:
    """Finish the plan that is under way, or make another."""
    plan = state.plan
    if plan is None or way is None or case.rules.dry_run:
        return _anew(case, state)
    is_rebalanced = case.facts.generation != plan.base_generation and not way.is_between
    is_undone = is_rebalanced and plan.is_restored and not way.is_there
    if is_undone or _is_news_of_migration(case, plan, way):
        return _again(case, state, plan, way)
    if way.is_there or plan.status != "open":
        return _anew(case, state)
    # Half of its life before a plan expires there is still time for the next one to be missed.
    is_old = 2 * (plan.valid_until_ms - case.now_ms) <= case.rules.valid_for_ms
    if is_old and not plan.is_adopted:
        return _anew(case, state)
    # While a partition is between two members, no follower has what a publication would start from.
    if is_old and plan.done > plan.done_then and not way.is_between:
        return _again(case, state, plan, way)
    if plan.is_adopted:
        reason = f"plan epoch {plan.epoch} is under way: {max(way.done, 0)} of {way.moves} moves are made"
    else:
        reason = f"plan epoch {plan.epoch} still says so: no member has taken it yet"
    return replace(_figures(case, way.target), reason=reason, plan=plan, state=state)


def _is_news_of_migration(case: _Case, plan: PlanState, way: Way) -> bool:
    """Whether members have to hear that migration is no longer what the plan's newest publication says.

    Of a plan that they have applied only that it has become possible: what was handed over must then go back.
    """
    now = case.rules.migration
    is_ours = case.facts.assignor in _FOLLOWED_WITHIN
    if now == plan.migration or not is_ours or way.is_between:
        return False
    return plan.status == "open" or (now == "possible" and plan.is_restored)


def _again(case: _Case, state: GroupState, plan: PlanState, way: Way) -> Decision:
    """The same target under the next epoch, from where the group is now."""
    decision = _published(case, _figures(case, way.target), way.target)
    has_moved = plan.status == "applied" or plan.done > plan.done_then
    until_ms = case.valid_until_ms if has_moved else plan.valid_until_ms
    state = continued(state, plan, decision, done=max(way.done, 0), valid_until_ms=until_ms)
    return replace(decision, plan=plan, state=state)


def _anew(case: _Case, state: GroupState) -> Decision:
    """Ask the strategy, and publish what it says unless something speaks against it."""
    target = _target(case, state)
    decision = _figures(case, target)
    reason = _why_unchanged(case, state, decision)
    if reason is not None:
        state = counted(state, None)
    else:
        state = counted(state, decision.base_hash)
        reason, state = _why_held_back(case, state, decision, target)
    decision = replace(decision, plan=state.plan, state=state)
    if reason is not None:
        return replace(decision, reason="; ".join((reason, *target.remarks)))
    if case.rules.dry_run:
        return replace(decision, decided="dry_run", reason="plan.dry_run is on: nothing is published")
    decision = _published(case, decision, target)
    plan = state.plan
    if plan is not None and _is_out(case, state, decision):
        state = continued(state, plan, decision, done=plan.done, valid_until_ms=case.valid_until_ms)
        return replace(decision, state=state)
    if plan is not None:
        plan = superseded(plan, f"epoch {decision.epoch} takes its place", now_ms=case.now_ms)
    state = replace(state, plan=plan)
    if decision.moves:
        state = started(state, decision, case.group, case.rules.guards, now_ms=case.now_ms)
    return replace(decision, plan=plan, state=state)


def _why_held_back(
    case: _Case, state: GroupState, decision: Decision, target: Assignment
) -> tuple[str | None, GroupState]:
    """What guard speaks against a plan; none does against one that is out already, or asked for by hand."""
    if not decision.moves or _is_out(case, state, decision):
        return None, state
    triggered_ms = _trigger(case, state)
    if triggered_ms is not None:
        return None, replace(state, triggered_at_ms=triggered_ms)
    plan, migration = state.plan, case.rules.migration
    if plan is not None and is_refused_for_migration(plan, case.group, case.facts):
        if migration != "disabled":
            return f"held back by migration: it is {migration}, and members refuse such plans", state
        # It had passed the guards, and what it was refused for is gone.
        if case.now_ms < plan.valid_until_ms:
            return None, state
    held = held_back(
        case.group, target, case.rules.guards, state, lag_age_s=case.lag_age_s, now_ms=case.now_ms
    )
    return (f"held back by {held}" if held else None), state


def _trigger(case: _Case, state: GroupState) -> int | None:
    """Time of a manual trigger that is still to be obeyed."""
    orders = case.facts.orders
    at_ms = orders.triggered_at_ms if orders is not None else None
    is_new = at_ms is not None and at_ms > state.triggered_at_ms and case.now_ms - at_ms < _TRIGGER_LIVES_MS
    return at_ms if is_new else None


def _target(case: _Case, state: GroupState) -> Assignment:
    """The strategy's answer, less the moves of partitions that have to stay."""
    group, rules = case.group, case.rules
    chosen = strategy(rules.strategy)
    options = dict(rules.options)
    if any(option.name == "max_moves" for option in chosen.options):
        options.setdefault("max_moves", rules.guards.most_moves(group.n_partitions))
    target = chosen.assign(group, options)
    check(group, target)
    stays = case.pinned | resting(group, rules.guards, state, now_ms=case.now_ms)
    return kept(group, target, stays, by_number=chosen.joins)


def _figures(case: _Case, target: Assignment) -> Decision:
    """The figures of a target, before anything is decided about it."""
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
        gives=given_ranges(group, target),
        unassigned=unassigned,
        # What a member holds and does not subscribe to, its consumer drops: nobody drains it.
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
    """Whether the newest plan on the control topic says the same, and members may still take it."""
    is_over = state.plan is not None and state.plan.status in {"refused", "partly", "expired"}
    return case.published is not None and _says(case.published) == _says(decision) and not is_over


def _why_unchanged(case: _Case, state: GroupState, decision: Decision) -> str | None:
    """Why nothing is to be published; None when something is."""
    published, now_ms = case.published, case.now_ms
    there = "the group has its target assignment"
    if published is None:
        return None if decision.moves else there
    if not decision.moves and (
        published.valid_until_ms <= now_ms or published.target_hash == decision.target_hash
    ):
        return there
    if not decision.moves and _is_put_off(case, state):
        return f"{there}; plan epoch {published.epoch} is kept for the members that have taken it"
    # Any other target that is still out must not be followed: it is replaced, also where nothing is to move.
    # Half of its life before a plan expires there is still time for the next one to be missed.
    is_young = published.valid_until_ms - now_ms > case.rules.valid_for_ms // 2
    has_news = state.plan is not None and state.plan.migration != case.rules.migration
    if _says(published) == _says(decision) and is_young and not has_news:
        return f"plan epoch {published.epoch} still says so"
    return None


def _is_put_off(case: _Case, state: GroupState) -> bool:
    """Whether what is out is a plan that other members have taken, and get again when they are alone."""
    plan, published = state.plan, case.published
    if plan is None or published is None or case.rules.dry_run or published.valid_until_ms <= case.now_ms:
        return False
    is_out = plan.is_restored and plan.epoch == published.epoch
    return is_out and set(plan.target) != set(case.group.member_ids)


def _says(plan: Decision | Published) -> tuple[str | None, str | None]:
    return plan.target_hash, plan.base_hash


def _finite(seconds: float | None) -> float | None:
    return seconds if seconds is not None and math.isfinite(seconds) else None


def _hash(content: object) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
