"""Returns partitions to their members before plans: after a plan that hurt, and after plans that are no longer needed.

A plan made during a burst balances the burst. Afterwards its assignment is as good as any while nothing happens, and
worse than an even one when the next burst comes elsewhere, because one member may hold most of the affected partitions.
So once nothing has been behind for some minutes, partitions return to the members that the group's own assignor had
given them, unless that would make a member busy. If moves are expensive (`price`), no later plan will even the group
out, so they return as soon as that makes no member busier than the busiest is now.
"""

from dataclasses import replace

import numpy as np

from assignor.evaluation.drain.time import sums_held
from assignor.model.arrays import Bools, Int32s
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.registry import strategy
from pipeline.planning import reasons
from pipeline.planning.effect import price
from pipeline.planning.effect.waiting import is_pending
from pipeline.planning.guards import has_settled, pauses
from pipeline.planning.problem.case import Case
from pipeline.planning.problem.fixed import barred
from pipeline.planning.problem.improvement import gain
from pipeline.planning.problem.steps import moves_of, step_towards
from pipeline.planning.problem.wanted import fixed_now
from pipeline.planning.progress import former_members_of
from pipeline.planning.record import ranges_by_member
from pipeline.planning.state import GroupState, PlanState, Ranges
from pipeline.planning.values import Target

_CALM_MS = 300_000
"""The cause of a plan is gone when nothing has been behind for so long."""
_AGAIN_MS = 3_600_000
"""After this time an incomplete way back resumes: members that did not answer get another chance."""
_BUSY = 0.7
"""Maximum load of a member to which partitions return, unless another member has a higher load now."""
_SAME = 0.02
"""A loss up to this share does not count: rates are not more exact."""


def home_after(state: GroupState, group: Group, target: Target, *, takes_back: bool) -> Ranges:
    """Return where partitions were before plans moved them, this target included.

    A partition that the group itself has reassigned since the previous plan is where it belongs. So is one that the
    target takes back after a plan that hurt: if that plan was a way back, lagwise does not repeat it.
    """
    member = target.assignment.member
    back = _home(state, group)
    if state.plan is not None:
        back = np.where(_is_by_plan(group, state.plan), back, np.int32(-1))
    if not takes_back:
        back = np.where((back < 0) & (member != group.owner), group.owner, back)
    # One that stays at home needs no way to it; one that is on its way may not arrive.
    is_there = (back == member) & (member == group.owner)
    return _ranges(group, np.where(is_there | (takes_back & (member != group.owner)), np.int32(-1), back))


def _is_by_plan(group: Group, plan: PlanState) -> Bools:
    """Return P entries: True if the partition is at its target, or still where it was before the plan."""
    by_plan: Bools = (group.owner == former_members_of(group, plan.target)) | (
        group.owner == former_members_of(group, plan.undo)
    )
    return by_plan


def goes_home(state: GroupState, group: Group, target: Target) -> bool:
    """Return whether the target only gives partitions back to the members that had them before plans."""
    member = target.assignment.member
    moved = member != group.owner
    return bool(moved.any() and (member == _home(state, group))[moved].all())


def is_way_back(state: GroupState, group: Group, target: Target) -> bool:
    """Return whether the target only returns partitions to the members that had them before plans, or before one."""
    return goes_home(state, group, target) or takes_back(state.plan, group, target) is not None


def way_back(case: Case, state: GroupState) -> Assignment | None:
    """Return the target that restores the group; None without a reason to, or if it is not possible now.

    Each decision tries again until the target is published or the group has rebalanced, while all partitions have
    owners: a partition has none during its hand-over.
    """
    plan, rules = state.plan, case.rules
    if plan is None or rules.dry_run or not has_settled(rules.guards, state, now_ms=case.now_ms):
        return None
    if (case.group.readable() & (case.group.owner < 0)).any():
        return None
    stays, is_closed = fixed_now(case, state)
    is_undone = plan.effect == "hurt" and not _stays_at_home(case, state, plan)
    if is_undone and state.rebalanced_at_ms <= plan.effect_at_ms:
        given_back = undone(case.group, plan, stays=stays, is_closed=is_closed)
        if given_back is not None:
            return given_back
    return _brought_home(case, state, plan, stays, is_closed) if _is_over(case, state, plan) else None


def _stays_at_home(case: Case, state: GroupState, plan: PlanState) -> bool:
    """Return whether a way home stays although it hurt, because moves are expensive.

    Undoing it costs as much again, and the group then waits up to two hours for its next plan. Without plans, the
    partitions would be where they are now.
    """
    back = _home(state, case.group)
    moved = former_members_of(case.group, plan.undo) >= 0
    is_home = moved.any() and (former_members_of(case.group, plan.target) == back)[moved].all()
    return bool(is_home) and price.is_expensive(state, now_ms=case.now_ms)


def _is_over(case: Case, state: GroupState, plan: PlanState) -> bool:
    """Return whether the cause of the plans has been gone for a while, and nothing prevents a plan."""
    if not state.home or not (_is_calm(case, state) or price.is_expensive(state, now_ms=case.now_ms)):
        return False
    chosen = strategy(case.rules.strategy)
    # The others do not go by lag, or assign by number.
    if not chosen.reads_lag or chosen.joins:
        return False
    # One that members refuse, or do not take, is not published again and again.
    is_settled = plan.status == "applied" and not is_pending(plan)
    is_forgiven = plan.status == "partly" and case.now_ms - plan.status_at_ms >= _AGAIN_MS
    return (is_settled or is_forgiven) and next(
        pauses(case.rules.guards, state, now_ms=case.now_ms), None
    ) is None


def _is_calm(case: Case, state: GroupState) -> bool:
    return state.calm_since_ms > 0 and case.now_ms - state.calm_since_ms >= _CALM_MS


def _brought_home(
    case: Case, state: GroupState, plan: PlanState, stays: Bools, is_closed: Bools
) -> Assignment | None:
    group, guards = case.group, case.rules.guards
    # Members that have come since have changed what is even, and what has been assigned anew is where it should be.
    if set(plan.target) != set(group.member_ids):
        return None
    back = _home(state, group)
    given = (back >= 0) & (group.owner >= 0) & (group.owner != back)
    given &= _is_by_plan(group, plan)
    given &= ~(stays | is_closed[back] | barred(group, guards, state, now_ms=case.now_ms))
    given &= group.subscriptions.allows(group.topics.topic_of, np.maximum(back, 0))
    whole = Assignment.complete(group, np.where(given, back, group.owner).astype(np.int32))
    # Half of the way may be even where its end is not.
    is_expensive = price.is_expensive(state, now_ms=case.now_ms)
    if not _is_better(group, whole.member, is_expensive=is_expensive):
        return None
    # In a small group all of it at once: what would be left is no longer the more even one.
    most = guards.most_moves(group.n_partitions, has_budget=False)
    most = min(most, case.rules.options.get("max_moves", most))
    step = step_towards(group, whole, most, by_number=False)
    returning = int(moves_of(group, step.member).sum())
    if not returning or not _is_better(group, step.member, is_expensive=is_expensive):
        return None
    is_calm = _is_calm(case, state)
    calm_s = (case.now_ms - state.calm_since_ms) // 1000 if is_calm else None
    return Assignment(member=step.member, why=step.why, remarks=(reasons.brought_home(returning, calm_s),))


def _is_better(group: Group, member: Int32s, *, is_expensive: bool) -> bool:
    """Whether the assignment is more even and makes no member busier or, unless moves are expensive, worse off now.

    The lag that members then have drains without a plan, while an uneven group would meet the next burst unprepared.
    """
    if group.capacity is None or _unevenness(group, member) >= _unevenness(group, group.owner):
        return False
    now, then = (
        float((sums_held(group.rate, one, group.n_members) / group.capacity).max())
        for one in (group.owner, member)
    )
    return then <= max(now, _BUSY) and (is_expensive or gain(group, group.owner, member) >= -_SAME)


def _unevenness(group: Group, member: Int32s) -> int:
    """Sum of the squares of what members hold, of each topic and of all: least where each topic is spread evenly."""
    held = np.zeros((len(group.topics.names), group.n_members), np.int64)
    is_held = member >= 0
    np.add.at(held, (group.topics.topic_of[is_held], member[is_held]), 1)
    return int((held**2).sum() + (held.sum(axis=0) ** 2).sum())


def _home(state: GroupState, group: Group) -> Int32s:
    """P entries: the member that the partition was with before plans moved it, -1 where none did."""
    return former_members_of(group, state.home)


def _ranges(group: Group, member: Int32s) -> Ranges:
    return {name: topics for name, topics in ranges_by_member(group, member).items() if topics}


def undone(group: Group, plan: PlanState, *, stays: Bools, is_closed: Bools) -> Assignment | None:
    """The group with the plan's moves undone; None if not all of them can be, or none is left.

    Undoing half of a swap would load a member with both halves.

    Args:
        group: The group as it is now.
        plan: The newest plan.
        stays: P entries: whether the partition must not move now.
        is_closed: N entries: whether the member must not get partitions now.
    """
    if plan.effect != "hurt":
        return None
    back = former_members_of(group, plan.undo)
    is_given_back = (
        (back >= 0) & (group.owner == former_members_of(group, plan.target)) & (group.owner != back)
    )
    may_read = group.subscriptions.allows(group.topics.topic_of, np.maximum(back, 0))
    if not is_given_back.any() or (is_given_back & (stays | is_closed[back] | ~may_read)).any():
        return None
    whole = Assignment.complete(group, np.where(is_given_back, back, group.owner).astype(np.int32))
    return replace(whole, remarks=(reasons.taken_back(plan.epoch, plan.effect_why or ""),))


def takes_back(plan: PlanState | None, group: Group, target: Target) -> int | None:
    """Epoch of the plan that hurt, if the target gives back what that moved and does nothing else."""
    if plan is None or plan.effect != "hurt":
        return None
    back, member = former_members_of(group, plan.undo), target.assignment.member
    moved = member != group.owner
    return plan.epoch if moved.any() and bool((member == back)[moved].all()) else None
