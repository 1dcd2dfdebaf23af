"""What an applied plan did to the members that it concerned: helped, hurt, or cannot tell.

It looks at measured progress alone, never at what the planner believes: a member that kept up before the plan, and
whose lag at its own commits rises three times in a row under it, is worse off by the plan, if arrivals are what they
were and nobody rebalanced in between. A plan hurts when its members together lose more ground than they lost before.
Whatever was believed wrongly, such a plan is taken back.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from assignor.model.arrays import Bools, Int32s
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from pipeline.planning import reasons
from pipeline.planning.problem.load import BACKLOG_S
from pipeline.planning.problem.measured import Measured
from pipeline.planning.progress import former_members_of
from pipeline.planning.record import ranges_by_member
from pipeline.planning.state import GroupState, PlanState, Witness
from pipeline.planning.values import Target

_COMMITS = 4
"""One to start from, and three by which a member loses ground."""
_APART_MS = 15_000
"""Commits closer than this are one."""
_ALIKE = 0.2
"""Arrivals that have changed by more than this share explain what a member loses."""
_LOSS = 0.05
"""Share of the arrivals that a member leaves unread when it loses ground; clocks and samples are not exact."""
_LITTLE_S = 2.0
"""Lag at a commit of so many seconds of arrivals is what one poll brings, whatever the member seems to lose."""
_GIVEN_UP_MS = 1_800_000
"""An effect that does not show within half an hour is not that of the plan alone."""


def watched(seen: Measured, before: PlanState | None, plan: PlanState) -> PlanState:
    """The published plan with the members that it concerns, as they fare now, and with where its partitions were.

    A plan that follows one that is not judged yet is judged with it: its members are held against how they fared before
    the first of them, and what hurts is taken back to there.
    """
    group, target = seen.group, former_members_of(seen.group, plan.target)
    first = before if before is not None and _is_unjudged(before) else None
    back = former_members_of(group, plan.undo)
    if first is not None:
        earlier = former_members_of(group, first.undo)
        back = np.where(earlier >= 0, earlier, back)
    back = np.where(back == target, np.int32(-1), back).astype(np.int32)
    known = {one.member_id: one for one in first.witnesses} if first is not None else {}
    found = []
    for number, member_id in enumerate(group.member_ids):
        had, gets = group.owner == number, target == number
        if member_id in known and np.array_equal(had, gets):
            found.append(known[member_id])
        elif member_id in known:
            # What it is given brings its lag along: that is no ground lost.
            then = float(seen.arriving[gets].sum())
            found.append(replace(known[member_id], arriving_then=then, commits_ms=(), lags=()))
        elif not np.array_equal(had, gets) and (one := _witness(seen, member_id, had, gets)) is not None:
            found.append(one)
    undo = {member_id: topics for member_id, topics in ranges_by_member(group, back).items() if topics}
    series = first.series + 1 if first is not None else 1
    return replace(plan, undo=undo, witnesses=tuple(found), series=series)


def _is_unjudged(plan: PlanState) -> bool:
    return plan.effect is None and plan.takes_back is None and plan.done > 0


def _witness(seen: Measured, member_id: str, had: Bools, gets: Bools) -> Witness | None:
    lag, arriving = seen.lag_of(had), float(seen.arriving[had].sum())
    if lag is None:
        return None
    drained = seen.drained_by(had)
    # Unknown progress is no loss: then the lag alone says whether it kept up.
    is_behind = drained is not None and lag > _LITTLE_S * arriving
    losing = max(arriving - (drained or 0.0), 0.0) if is_behind else 0.0
    return Witness(
        member_id=member_id,
        kept_up=lag <= BACKLOG_S * arriving and losing <= _LOSS * arriving,
        losing=losing,
        arriving=arriving,
        arriving_then=float(seen.arriving[gets].sum()),
    )


def observed(state: GroupState, seen: Measured, *, now_ms: int) -> GroupState:
    """The state with what this decision sees of the effect of its newest plan."""
    plan = state.plan
    if plan is None or plan.effect is not None or plan.takes_back is not None:
        return state
    if plan.status == "open":
        return state
    if plan.status != "applied":
        return replace(state, plan=replace(plan, effect="cannot tell", effect_why=reasons.NOT_APPLIED))
    if state.rebalanced_at_ms > plan.status_at_ms:
        return replace(state, plan=replace(plan, effect="cannot tell", effect_why=reasons.REBALANCED_SINCE))
    back = former_members_of(seen.group, plan.undo)
    plan = replace(plan, witnesses=tuple(_sampled(one, seen, plan, back) for one in plan.witnesses))
    return replace(state, plan=_judged(plan, seen, now_ms=now_ms))


def is_pending(plan: PlanState | None) -> bool:
    """Whether the next plan waits for the judge.

    That is when the plan is applied, its members lose more ground than before, and three commits have not passed; and
    after two plans that are judged together until something can be seen of them.
    """
    if plan is None or plan.status != "applied" or plan.effect is not None:
        return False
    if plan.series > 1 and any(
        one.kept_up and _is_watched(one) and not one.lags[1:] for one in plan.witnesses
    ):
        return True
    return any(one.kept_up and _loss(one) > _noise(one) for one in plan.witnesses) and _is_net_loss(plan)


def _sampled(one: Witness, seen: Measured, plan: PlanState, back: Int32s) -> Witness:
    """The witness with the member's newest commit, if that is another one; without any if arrivals have changed.

    `back` has the member that each moved partition was with before the plan, -1 for the others.
    """
    group = seen.group
    if one.is_excused or one.member_id not in group.member_ids:
        return replace(one, is_excused=True)
    number = group.member_ids.index(one.member_id)
    now = group.owner == number
    had = (now & (back < 0)) | (back == number)
    pairs = ((one.arriving, had), (one.arriving_then, now))
    if not all(abs(float(seen.arriving[held].sum()) - then) <= _ALIKE * then for then, held in pairs):
        return replace(one, is_excused=True)
    commit_ms, lag = seen.newest_ms(now), seen.lag_of(now)
    last_ms = one.commits_ms[-1] if one.commits_ms else plan.status_at_ms
    if lag is None or commit_ms < last_ms + _APART_MS:
        return one
    return replace(
        one,
        commits_ms=(*one.commits_ms, commit_ms)[-_COMMITS:],
        lags=(*one.lags, round(lag))[-_COMMITS:],
    )


def _judged(plan: PlanState, seen: Measured, *, now_ms: int) -> PlanState:
    hurt = next((one for one in plan.witnesses if _loses_ground(one)), None)
    if hurt is not None and _is_net_loss(plan):
        why = reasons.loses_ground(hurt.member_id, hurt.lags)
        return replace(plan, effect="hurt", effect_why=why, effect_at_ms=now_ms)
    watched = [one for one in plan.witnesses if _is_watched(one)]
    all_excused = bool(plan.witnesses) and not watched
    are_seen = bool(watched) and all(len(one.lags) == _COMMITS for one in watched)
    left = int(seen.curable_backlog().sum())
    if are_seen and hurt is None and (plan.drained_s is not None or left < plan.lag):
        why = reasons.less_behind(plan.lag, left)
        return replace(plan, effect="helped", effect_why=why, effect_at_ms=now_ms)
    if all_excused or now_ms - plan.status_at_ms > _GIVEN_UP_MS:
        why = reasons.ARRIVALS_CHANGED if all_excused else reasons.NO_EFFECT_SEEN
        return replace(plan, effect="cannot tell", effect_why=why, effect_at_ms=now_ms)
    return plan


def _is_watched(one: Witness) -> bool:
    """Whether the member can show anything: nothing has changed about it, and it has something to read."""
    return not one.is_excused and one.arriving_then > 0


def _loses_ground(one: Witness) -> bool:
    """Whether a member that kept up is further behind at each of its three newest commits."""
    if not one.kept_up or len(one.lags) < _COMMITS:
        return False
    return all(later > earlier for earlier, later in pairwise(one.lags)) and _loss(one) > _noise(one)


def _is_net_loss(plan: PlanState) -> bool:
    """Whether the members that the plan concerns lose more ground together than they did before it."""
    watched = [one for one in plan.witnesses if not one.is_excused]
    return sum(map(_loss, watched)) > sum(one.losing for one in watched)


def _loss(one: Witness) -> float:
    """Records/s by which the member's lag at its commits grows; 0 where it falls, and where that is not known."""
    if one.is_excused or not one.lags[1:]:
        return 0.0
    grown = one.lags[-1] - one.lags[0]
    return max(grown * 1000 / max(one.commits_ms[-1] - one.commits_ms[0], 1), 0.0)


def _noise(one: Witness) -> float:
    return _LOSS * one.arriving_then


def undone(group: Group, plan: PlanState, *, stays: Bools, is_closed: Bools) -> Assignment | None:
    """The group with what the plan moved back where it was; None when that is not all to be had, or nothing is left.

    Half of an exchange taken back would load a member with both halves.

    Args:
        group: As it is now.
        plan: The newest one.
        stays: P entries: may the partition not move now.
        is_closed: N entries: may the member be given nothing now.
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
