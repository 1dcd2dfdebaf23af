"""What a decision leaves for the next one."""

from collections.abc import Collection
from dataclasses import replace

from assignor.model.group import Group
from pipeline.planning.guards import Guards
from pipeline.planning.problem.fixed import DAY_MS
from pipeline.planning.progress import PlanProgress
from pipeline.planning.state import GroupState, PlanState, partition_key
from pipeline.planning.values import Move, Publication

_LEFT = 0.05
"""A backlog is gone when only this share of it is left, or what arrives in `_ARRIVALS_S`: commits come in steps."""
_ARRIVALS_S = 10.0
_SILENT_FOR_MS = 3_600_000
"""After so long a member that did not answer is given another chance."""


def on_confirmed(state: GroupState, base_hash: str | None) -> GroupState:
    """The state after an evaluation: `base_hash` of the group that needs a plan, or None when it needs none."""
    if base_hash is None:
        if state.base_hash is None and state.confirmations == 0:
            return state
        return replace(state, base_hash=None, confirmations=0)
    so_far = state.confirmations if base_hash == state.base_hash else 0
    return replace(state, base_hash=base_hash, confirmations=so_far + 1)


def on_answers(
    state: GroupState, *, silent: Collection[str], answered: Collection[str], now_ms: int
) -> GroupState:
    """The state with these members known to be silent, and those that have answered no longer."""
    known = {
        member_id: since_ms
        for member_id, since_ms in state.silent_since_ms.items()
        if member_id not in answered and now_ms - since_ms < _SILENT_FOR_MS
    }
    return replace(state, silent_since_ms=dict.fromkeys(silent, now_ms) | known)


def on_observed(
    state: GroupState, plan: PlanState, progress: PlanProgress | None, group: Group, *, now_ms: int
) -> GroupState:
    """The state with what became of its plan; a partition that the plan did not move need not cool down."""
    before, plan = state.plan, _drained(plan, group, now_ms=now_ms)
    state = replace(state, plan=plan)
    if before is None or before.status != "open" or plan.status in {"open", "applied"}:
        return state
    return replace(state, moved_at_ms=_without_unmade(state, plan, progress))


def _without_unmade(
    state: GroupState, plan: PlanState, progress: PlanProgress | None
) -> dict[str, tuple[int, ...]]:
    left = progress.left() if progress is not None else frozenset()
    moved = {
        name: times
        if plan.status == "partly" and name not in left
        else tuple(at_ms for at_ms in times if at_ms != plan.published_at_ms)
        for name, times in state.moved_at_ms.items()
    }
    return {name: times for name, times in moved.items() if times}


def on_resent(state: GroupState, plan: PlanState, published: Publication, *, done: int) -> GroupState:
    """The state once its plan has been published again, for the group as it is now.

    The plan gets more time only if something has moved since it was published last: a plan that stands still would be
    published for ever.

    Args:
        state: Before the publication.
        plan: The state's plan.
        published: The same target, as it is now.
        done: Moves that are made already.
    """
    has_moved = plan.status != "open" or plan.done > plan.done_then
    target, sent = published.target, published.sent
    resent = replace(
        plan,
        epoch=sent.epoch,
        base_generation=published.generation,
        sent_at_ms=published.at_ms,
        revoked=target.revoked,
        receivers=target.receivers,
        moves=done + len(target.moves),
        migration=sent.migration,
        approved_by=published.approved_by or plan.approved_by,
        valid_until_ms=sent.valid_until_ms if has_moved else plan.valid_until_ms,
        status="open",
        why=None,
        done=done,
        done_then=done,
    )
    return replace(state, plan=resent)


def on_published(state: GroupState, published: Publication, group: Group, guards: Guards) -> GroupState:
    """The state once a new plan has been published: the group cools down, longer if the last plan did not help."""
    target, sent, now_ms = published.target, published.sent, published.at_ms
    longer_ms = max(min(2 * state.cooldown_ms, guards.cooldown_max_ms), guards.cooldown_ms)
    length_ms = guards.cooldown_ms if _has_helped(state.plan, group) else longer_ms
    plan = PlanState(
        epoch=sent.epoch,
        base_generation=published.generation,
        target=target.by_member,
        revoked=target.revoked,
        receivers=target.receivers,
        unassigned=target.unassigned,
        moves=len(target.moves),
        published_at_ms=now_ms,
        sent_at_ms=now_ms,
        valid_until_ms=sent.valid_until_ms,
        lag=int(group.lag.sum()),
        drain_s=target.figures.drain_s_after,
        migration=sent.migration,
        approved_by=published.approved_by,
        status_at_ms=now_ms,
    )
    return replace(
        state,
        confirmations=0,
        base_hash=None,
        cooldown_ms=length_ms,
        cooldown_until_ms=now_ms + length_ms,
        moved_at_ms=_moved(state, target.moves, now_ms=now_ms),
        plan=plan,
    )


def _drained(plan: PlanState, group: Group, *, now_ms: int) -> PlanState:
    """The plan with the time that the backlog took to go, once it is gone."""
    left = float(group.lag.sum())
    if plan.drained_s is not None or left > max(_LEFT * plan.lag, _ARRIVALS_S * float(group.rate.sum())):
        return plan
    return replace(plan, drained_s=(now_ms - plan.published_at_ms) / 1000)


def _has_helped(plan: PlanState | None, group: Group) -> bool:
    """Whether the lag that the plan was made for is gone, or has become less; True when there was no plan."""
    if plan is None or plan.drained_s is not None:
        return True
    return float(group.lag.sum()) < plan.lag - _ARRIVALS_S * float(group.rate.sum())


def _moved(state: GroupState, moves: tuple[Move, ...], *, now_ms: int) -> dict[str, tuple[int, ...]]:
    """When each partition was moved within a day, these moves included."""
    moved = {
        name: tuple(at_ms for at_ms in times if now_ms - at_ms < DAY_MS)
        for name, times in state.moved_at_ms.items()
    }
    for move in moves:
        # A partition without an owner was revoked from nobody: it need not cool down.
        if move.from_member is not None:
            name = partition_key(move.topic, move.partition)
            moved[name] = (*moved.get(name, ()), now_ms)
    return {name: times for name, times in moved.items() if times}
