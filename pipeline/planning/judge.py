"""What an applied plan did to the members that it concerned: helped, hurt, or cannot tell.

The judge looks only at measured progress, never at what the planner believes. The plan has made a member worse off if
the member kept up before it and its lag at its own commits rises three times in a row under it (or fewer times by
more), while arrivals are unchanged and the group has not rebalanced. A plan hurts when its members together lose more
ground than they did before. lagwise takes such a plan back, whichever belief was wrong.

A plan that takes partitions only from members that were not behind at their commits helps no member measurably. It is
needless: the next such plan waits for the verdict, longer each time, and all of them are judged, and taken back,
together.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from assignor.model.arrays import Bools, Int32s
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from pipeline.lag.at_commit import clock_error_records
from pipeline.planning import reasons
from pipeline.planning.guards import Guards
from pipeline.planning.problem.load import BACKLOG_S
from pipeline.planning.problem.measured import Measured
from pipeline.planning.progress import former_members_of
from pipeline.planning.record import ranges_by_member
from pipeline.planning.state import Effect, GroupState, PlanState, Witness
from pipeline.planning.values import Target

_COMMITS = 4
"""One to start from, and three at which a member can lose ground."""
_APART_MS = 15_000
"""Commits closer together than this count as one."""
_ALIKE = 0.2
"""A larger change of arrivals, as a share, explains the ground that a member loses."""
_LOSS = 0.05
"""Share of the arrivals that a member leaves unread when it loses ground; clocks and samples are not exact."""
_LOSS_BY_RISES = {3: _LOSS, 2: 0.1}
"""That share, by the number of rises in a row: large losses show sooner (Wald, Sequential Analysis, 1947)."""
_STANDS_STILL = 0.02
"""A member that drains no more than this share of its arrivals stands still, which no plan causes."""
_GIVEN_UP_MS = 1_800_000
"""An effect that does not show within half an hour is not due to the plan alone."""
_WORKS_S = 600.0
"""A verdict takes minutes. A member that catches up sooner than this needs no other plan."""


def watched(seen: Measured, before: PlanState | None, plan: PlanState) -> PlanState:
    """The published plan, with the present progress of the members that it concerns and the former owners.

    A plan that follows one without a verdict is judged with it: its members are compared with their progress before the
    first of these plans, and if they hurt, the partitions go back to where they were then.
    """
    group, target = seen.group, former_members_of(seen.group, plan.target)
    first = before if before is not None and _is_open_question(before) else None
    back = former_members_of(group, plan.undo)
    if first is not None:
        earlier = former_members_of(group, first.undo)
        # A partition that a rebalance has reassigned since is where it belongs.
        earlier = np.where(group.owner == former_members_of(group, first.target), earlier, np.int32(-1))
        back = np.where(earlier >= 0, earlier, back)
    back = np.where(back == target, np.int32(-1), back).astype(np.int32)
    known = {one.member_id: one for one in first.witnesses} if first is not None else {}
    found = []
    for number, member_id in enumerate(group.member_ids):
        had, gets = group.owner == number, target == number
        if member_id in known and np.array_equal(had, gets):
            found.append(known[member_id])
        elif member_id in known:
            # The partitions that it gets bring their lag along: that is no ground lost.
            then, lag = float(seen.arriving[gets].sum()), seen.lag_of(gets)
            found.append(
                replace(known[member_id], arriving_then=then, lag_then=lag or 0.0, commits_ms=(), lags=())
            )
        elif not np.array_equal(had, gets) and (one := _witness(seen, member_id, had, gets)) is not None:
            found.append(one)
    undo = {member_id: topics for member_id, topics in ranges_by_member(group, back).items() if topics}
    series = first.series + 1 if first is not None else 1
    needless = is_needless(seen, before, target)
    return replace(plan, undo=undo, witnesses=tuple(found), series=series, is_needless=needless)


def is_needless(seen: Measured, before: PlanState | None, target: Int32s) -> bool:
    """Whether all members from which the target takes partitions are known to keep up.

    Members that only needless plans have put behind count as keeping up.

    Args:
        seen: The group as its commits show it.
        before: The newest plan.
        target: P entries: member of each partition.
    """
    group, owner = seen.group, seen.group.owner
    moved = (target >= 0) & (target != owner)
    if not moved.any() or (owner[moved] < 0).any():
        return False
    put_behind = set()
    if before is not None and before.is_needless and _is_open_question(before):
        put_behind = {one.member_id for one in before.witnesses if one.kept_up and not one.is_excused}
    return all(
        group.member_ids[number] in put_behind or _keeps_up(seen, owner == number)
        for number in np.unique(owner[moved]).tolist()
    )


def _keeps_up(seen: Measured, held: Bools) -> bool:
    lag = seen.lag_of(held)
    if lag is None or bool(seen.is_late[held].any()):
        return False
    return lag <= float(clock_error_records(float(seen.arriving[held].sum())))


def _is_open_question(plan: PlanState) -> bool:
    """Whether the plan's effect is still unknown: it has no verdict, or it was needless and has no visible effect."""
    is_open = plan.effect is None or (plan.effect == "cannot tell" and plan.is_needless)
    return is_open and plan.takes_back is None and plan.done > 0


def _witness(seen: Measured, member_id: str, had: Bools, gets: Bools) -> Witness | None:
    lag, arriving = seen.lag_of(had), float(seen.arriving[had].sum())
    if lag is None:
        return None
    drained = seen.drained_by(had)
    # Unknown progress is no loss: then the lag alone says whether it kept up.
    is_behind = drained is not None and lag > clock_error_records(arriving)
    losing = max(arriving - (drained or 0.0), 0.0) if is_behind else 0.0
    return Witness(
        member_id=member_id,
        kept_up=lag <= BACKLOG_S * arriving and losing <= _LOSS * arriving,
        losing=losing,
        arriving=arriving,
        arriving_then=float(seen.arriving[gets].sum()),
        lag_then=seen.lag_of(gets) or 0.0,
    )


def observed(state: GroupState, seen: Measured, *, now_ms: int) -> GroupState:
    """The state, with the effect of its newest plan as far as this decision sees it."""
    plan = state.plan
    if plan is None or plan.takes_back is not None or plan.status == "open":
        return state
    if plan.effect is not None:
        # The effect of a needless plan may show later, as long as the group stays as the plan left it.
        is_watched = plan.status == "applied" and state.rebalanced_at_ms <= plan.status_at_ms
        return _sighted(state, plan, seen, now_ms=now_ms) if is_watched and _is_open_question(plan) else state
    if plan.status != "applied":
        return replace(state, plan=replace(plan, effect="cannot tell", effect_why=reasons.NOT_APPLIED))
    if state.rebalanced_at_ms > plan.status_at_ms:
        return replace(state, plan=replace(plan, effect="cannot tell", effect_why=reasons.REBALANCED_SINCE))
    return _sighted(state, plan, seen, now_ms=now_ms)


def _sighted(state: GroupState, plan: PlanState, seen: Measured, *, now_ms: int) -> GroupState:
    """The state, with the newest commits of the members that its applied plan concerns, and the verdict on them."""
    back = former_members_of(seen.group, plan.undo)
    plan = replace(plan, witnesses=tuple(_sampled(one, seen, plan, back) for one in plan.witnesses))
    return replace(state, plan=_judged(plan, seen, now_ms=now_ms))


def is_pending(plan: PlanState | None) -> bool:
    """Whether the next plan waits for the judge.

    It does if the plan is applied, its members lose more ground than before, and they have made fewer than three
    commits since; and, after two plans that are judged together, until the members that kept up have committed twice.
    """
    if plan is None or plan.status != "applied" or plan.effect is not None:
        return False
    if plan.series > 1 and any(
        one.kept_up and _is_watched(one) and not one.lags[1:] for one in plan.witnesses
    ):
        return True
    if plan.is_needless and any(one.kept_up and _is_put_behind(one) for one in plan.witnesses):
        return True
    return any(one.kept_up and _loss(one) > _noise(one) for one in plan.witnesses) and _is_net_loss(plan)


def why_waits(plan: PlanState | None, seen: Measured) -> str | None:
    """Why every plan waits for the effect of the newest one, as a guard's cause; None if none waits."""
    if plan is None:
        return None
    if is_pending(plan):
        return reasons.guard_effect(plan.epoch)
    return reasons.guard_effect_works(plan.epoch) if is_working(plan, seen) else None


def is_working(plan: PlanState, seen: Measured) -> bool:
    """Whether the newest plan is applied and without a verdict, and all members behind are on course to catch up soon.

    Another plan would save little, and if it did harm, lagwise would take both back together.
    """
    if plan.status != "applied" or plan.effect is not None or plan.takes_back is not None:
        return False
    if (seen.group.owner < 0).any():
        # Nobody catches up with a partition that nobody has.
        return False
    catching_up = [_catches_up_s(seen, seen.group.owner == number) for number in range(seen.group.n_members)]
    return all(seconds <= _WORKS_S for seconds in catching_up) and any(catching_up)


def _catches_up_s(seen: Measured, held: Bools) -> float:
    """Seconds until the member has drained its lag, by its commits; 0 if it keeps up, infinite if no progress shows."""
    lag, drained, arriving = seen.lag_of(held), seen.drained_by(held), float(seen.arriving[held].sum())
    if lag is None:
        return math.inf
    if lag <= BACKLOG_S * arriving:
        return 0.0
    if drained is None or drained <= (1 + _LOSS) * arriving:
        return math.inf
    return lag / (drained - arriving)


def _is_put_behind(one: Witness) -> bool:
    """Whether the member has a new backlog, which did not come with its partitions, and does not drain it."""
    if one.is_excused or not one.lags or one.lags[-1] <= _level(one):
        return False
    return not one.lags[1:] or one.lags[-1] >= one.lags[-2]


def _level(one: Witness) -> float:
    """Lag above which the member has a backlog of its own, on top of what came with its partitions."""
    return one.lag_then + BACKLOG_S * one.arriving_then


def why_needless_waits(state: GroupState, guards: Guards, *, now_ms: int) -> str | None:
    """Why a needless plan waits, as a guard's cause; None if it does not.

    After a needless plan it waits for the verdict, each time twice as long; after one that hurt, much longer.
    """
    plan = state.plan
    if now_ms < state.needless_until_ms:
        return reasons.guard_effect_hurt(state.needless_until_ms - now_ms)
    if plan is None or not plan.is_needless or plan.takes_back is not None or plan.status != "applied":
        return None
    if plan.effect is None:
        return reasons.guard_effect_unseen(plan.epoch)
    pause_ms = min(guards.doubled_pause_ms(plan.series), guards.cooldown_max_ms)
    left_ms = plan.published_at_ms + pause_ms - now_ms
    return reasons.guard_effect_rests(plan.epoch, left_ms) if left_ms > 0 else None


def _sampled(one: Witness, seen: Measured, plan: PlanState, back: Int32s) -> Witness:
    """The witness with the member's newest commit, if it is a new one; excused if arrivals have changed.

    `back` contains the former owner of each moved partition, -1 for the others.
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
    drained, arriving = seen.drained_by(now), float(seen.arriving[now].sum())
    if drained is not None and lag > 0 and drained <= _STANDS_STILL * arriving:
        return replace(one, commits_ms=(), lags=())
    return replace(
        one,
        commits_ms=(*one.commits_ms, commit_ms)[-_COMMITS:],
        lags=(*one.lags, round(lag))[-_COMMITS:],
    )


def _judged(plan: PlanState, seen: Measured, *, now_ms: int) -> PlanState:
    found = _verdict(plan, seen, now_ms=now_ms)
    if found is None:
        return plan
    effect, why = found
    return replace(plan, effect=effect, effect_why=why, effect_at_ms=now_ms)


def _verdict(plan: PlanState, seen: Measured, *, now_ms: int) -> tuple[Effect, str] | None:
    """The plan's effect and the cause; None to leave its present one."""
    hurt = next((one for one in plan.witnesses if _loses_ground(one, plan)), None)
    if hurt is not None and _is_net_loss(plan):
        return "hurt", reasons.loses_ground(hurt.member_id, hurt.lags)
    if plan.effect is not None:
        return None
    watched = [one for one in plan.witnesses if _is_watched(one)]
    if hurt is None and (benefit := _benefit(plan, seen, watched)):
        return benefit
    if plan.witnesses and not watched:
        return "cannot tell", reasons.ARRIVALS_CHANGED
    is_given_up = now_ms - plan.status_at_ms > _GIVEN_UP_MS
    return ("cannot tell", reasons.NO_EFFECT_SEEN) if is_given_up else None


def _benefit(plan: PlanState, seen: Measured, watched: Sequence[Witness]) -> tuple[Effect, str] | None:
    """The effect of a plan that hurt nobody; None until it shows in the commits of all watched members."""
    if not watched or any(len(one.lags) != _COMMITS for one in watched):
        return None
    if plan.is_needless and not any(one.kept_up and one.lags[-1] > _level(one) for one in watched):
        return "cannot tell", reasons.NOBODY_WAS_BEHIND
    left = int(seen.curable_backlog().sum())
    is_less = plan.drained_s is not None or left < plan.lag
    return ("helped", reasons.less_behind(plan.lag, left)) if is_less else None


def _is_watched(one: Witness) -> bool:
    """Whether the member can show an effect: it is not excused, and it has records to read."""
    return not one.is_excused and one.arriving_then > 0


def _loses_ground(one: Witness, plan: PlanState) -> bool:
    """Whether a member that kept up is further behind at each of its three newest commits.

    After a needless plan, before which nobody was behind, a member with a backlog is also compared with its lag when
    the plan was applied, at fewer commits if it loses more. It has also lost ground if its backlog is no smaller at the
    last of four commits than at the first. lagwise learns from other plans, and the next one corrects them.
    """
    if not one.kept_up or one.is_excused or not one.lags[1:]:
        return False
    is_full = len(one.lags) == _COMMITS
    is_rising = all(later > earlier for earlier, later in pairwise(one.lags))
    # Clock errors can look like a small loss. A plan that only waits for the verdict needs no such margin.
    is_evident = one.lags[-1] - one.lags[0] > clock_error_records(one.arriving_then)
    if is_full and is_rising and is_evident and _loss(one) > _noise(one):
        return True
    if not plan.is_needless or min(one.lags[-2:]) <= _level(one):
        return False
    if is_full and min(one.lags) > _level(one):
        return one.lags[-1] >= one.lags[0]
    lags, times_ms = (one.lag_then, *one.lags), (plan.status_at_ms, *one.commits_ms)
    if is_full:
        lags, times_ms = lags[-3:], times_ms[-3:]
    loss = (lags[-1] - lags[0]) * 1000 / max(times_ms[-1] - times_ms[0], 1)
    is_rising = all(later > earlier for earlier, later in pairwise(lags))
    return is_rising and loss > _LOSS_BY_RISES[len(lags) - 1] * one.arriving_then


def _is_net_loss(plan: PlanState) -> bool:
    """Whether the members that the plan concerns lose more ground together than they did before it.

    If the plan was needless and none lost ground before it, one member with a backlog that it does not drain is enough.
    """
    watched = [one for one in plan.witnesses if not one.is_excused]
    before = sum(one.losing for one in watched)
    is_stuck = any(one.kept_up and _is_put_behind(one) for one in watched)
    return (plan.is_needless and before == 0 and is_stuck) or sum(map(_loss, watched)) > before


def _loss(one: Witness) -> float:
    """Growth of the member's lag at its commits in records/s; 0 if it falls, or if that is unknown."""
    if one.is_excused or not one.lags[1:]:
        return 0.0
    grown = one.lags[-1] - one.lags[0]
    return max(grown * 1000 / max(one.commits_ms[-1] - one.commits_ms[0], 1), 0.0)


def _noise(one: Witness) -> float:
    return _LOSS * one.arriving_then


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
