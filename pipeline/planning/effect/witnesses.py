"""Members that a plan concerns, and their progress at their own commits, before and after it.

A plan that takes partitions only from members that were not behind at their commits helps no member measurably. It is
needless: the next such plan waits for the verdict, longer each time, and all of them are judged, and taken back,
together.
"""

from dataclasses import replace

import numpy as np

from assignor.model.arrays import Bools, Int32s
from assignor.model.group import Group
from pipeline.lag.commits.at_commit import clock_error_records
from pipeline.planning.effect.losses import LOSS
from pipeline.planning.problem.load import BACKLOG_S
from pipeline.planning.problem.measured import Measured
from pipeline.planning.progress import former_members_of
from pipeline.planning.record import ranges_by_member
from pipeline.planning.state import PlanState, Ranges, Witness

COMMITS = 4
"""One to start from, and three at which a member can lose ground."""
_APART_MS = 15_000
"""Commits closer together than this count as one."""
_ALIKE = 0.2
"""A larger change of arrivals, as a share, explains the ground that a member loses."""
_STANDS_STILL = 0.02
"""A member that drains no more than this share of its arrivals stands still, which no plan causes."""


def watched(seen: Measured, before: PlanState | None, plan: PlanState) -> PlanState:
    """The published plan, with the present progress of the members that it concerns and the former owners.

    A plan that follows one without a verdict is judged with it: its members are compared with their progress before the
    first of these plans, and if they hurt, the partitions go back to where they were then.
    """
    group, target = seen.group, former_members_of(seen.group, plan.target)
    first = before if before is not None and is_open_question(before) else None
    known = {one.member_id: one for one in first.witnesses} if first is not None else {}
    found = (
        _witness(seen, known.get(member_id), member_id, had=group.owner == number, gets=target == number)
        for number, member_id in enumerate(group.member_ids)
    )
    return replace(
        plan,
        undo=_undo(group, first, plan, target),
        witnesses=tuple(one for one in found if one is not None),
        series=first.series + 1 if first is not None else 1,
        is_needless=is_needless(seen, before, target),
    )


def _undo(group: Group, first: PlanState | None, plan: PlanState, target: Int32s) -> Ranges:
    """The partitions that the plans move, by the member that had them before the first of the plans."""
    back = former_members_of(group, plan.undo)
    if first is not None:
        earlier = former_members_of(group, first.undo)
        # A partition that a rebalance has reassigned since is where it belongs.
        earlier = np.where(group.owner == former_members_of(group, first.target), earlier, np.int32(-1))
        back = np.where(earlier >= 0, earlier, back)
    back = np.where(back == target, np.int32(-1), back).astype(np.int32)
    return {member_id: topics for member_id, topics in ranges_by_member(group, back).items() if topics}


def _witness(
    seen: Measured, known: Witness | None, member_id: str, *, had: Bools, gets: Bools
) -> Witness | None:
    """The member as a witness; None if the plan does not concern it, or its progress is unknown.

    Args:
        seen: The group as its commits show it.
        known: The member as a witness of the plans before that are judged with this one.
        member_id: Of the member.
        had: P entries: what it holds.
        gets: P entries: what the plan leaves or gives it.
    """
    if np.array_equal(had, gets):
        return known
    if known is None:
        return _new_witness(seen, member_id, had, gets)
    # The partitions that it gets bring their lag along: that is no ground lost.
    then, lag = float(seen.arriving[gets].sum()), seen.lag_of(gets)
    return replace(known, arriving_then=then, lag_then=lag or 0.0, commits_ms=(), lags=())


def _new_witness(seen: Measured, member_id: str, had: Bools, gets: Bools) -> Witness | None:
    lag, arriving = seen.lag_of(had), float(seen.arriving[had].sum())
    if lag is None:
        return None
    drained = seen.drained_by(had)
    # Unknown progress is no loss: then the lag alone says whether it kept up.
    is_behind = drained is not None and lag > clock_error_records(arriving)
    losing = max(arriving - (drained or 0.0), 0.0) if is_behind else 0.0
    return Witness(
        member_id=member_id,
        kept_up=lag <= BACKLOG_S * arriving and losing <= LOSS * arriving,
        losing=losing,
        arriving=arriving,
        arriving_then=float(seen.arriving[gets].sum()),
        lag_then=seen.lag_of(gets) or 0.0,
    )


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
    put_behind = _put_behind_by(before) if before is not None else frozenset()
    return all(
        group.member_ids[number] in put_behind or _keeps_up(seen, owner == number)
        for number in np.unique(owner[moved]).tolist()
    )


def _put_behind_by(plan: PlanState) -> frozenset[str]:
    """Members that only this needless plan, still without a verdict, may have put behind."""
    if not plan.is_needless or not is_open_question(plan):
        return frozenset()
    return frozenset(one.member_id for one in plan.witnesses if one.kept_up and not one.is_excused)


def _keeps_up(seen: Measured, held: Bools) -> bool:
    lag = seen.lag_of(held)
    if lag is None or bool(seen.is_late[held].any()):
        return False
    return lag <= float(clock_error_records(float(seen.arriving[held].sum())))


def is_open_question(plan: PlanState) -> bool:
    """Whether the plan's effect is still unknown: it has no verdict, or it was needless and has no visible effect."""
    is_open = plan.effect is None or (plan.effect == "cannot tell" and plan.is_needless)
    return is_open and plan.takes_back is None and plan.done > 0


def sampled(one: Witness, seen: Measured, plan: PlanState, back: Int32s) -> Witness:
    """The witness with the member's newest commit, if it is a new one; excused if arrivals have changed.

    `back` contains the former owner of each moved partition, -1 for the others.
    """
    group = seen.group
    if one.is_excused or one.member_id not in group.member_ids:
        return replace(one, is_excused=True)
    number = group.member_ids.index(one.member_id)
    now = group.owner == number
    had = (now & (back < 0)) | (back == number)
    if not (_is_alike(seen, had, one.arriving) and _is_alike(seen, now, one.arriving_then)):
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
        commits_ms=(*one.commits_ms, commit_ms)[-COMMITS:],
        lags=(*one.lags, round(lag))[-COMMITS:],
        grown=max(arriving - one.arriving_then, 0.0),
    )


def _is_alike(seen: Measured, held: Bools, then: float) -> bool:
    """Whether arrivals on these partitions, records/s, are what they were then."""
    return abs(float(seen.arriving[held].sum()) - then) <= _ALIKE * then
