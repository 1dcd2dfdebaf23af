"""What a decision leaves for the next one."""

from collections.abc import Collection
from dataclasses import replace

from assignor.model.group import Group
from pipeline.planning.facts import Decision, Move
from pipeline.planning.frozen import DAY_MS
from pipeline.planning.guards import Guards
from pipeline.planning.outcome import helped
from pipeline.planning.state import GroupState, PlanState, partition_key

_NOT_MADE = ("refused", "superseded", "expired")


def on_confirmed(state: GroupState, base_hash: str | None) -> GroupState:
    """The state after an evaluation: `base_hash` of the group that needs a plan, or None when it needs none."""
    if base_hash is None:
        return replace(state, base_hash=None, confirmations=0)
    so_far = state.confirmations if base_hash == state.base_hash else 0
    return replace(state, base_hash=base_hash, confirmations=so_far + 1)


def on_outcome(state: GroupState, plan: PlanState, *, left: Collection[str] = ()) -> GroupState:
    """The state with this outcome of its plan; a partition that the plan did not move need not cool down.

    Args:
        state: Before the outcome.
        plan: The state's plan, with the outcome.
        left: Partitions (`state.partition_key`) that are still with the member that the plan revokes them from.
    """
    if state.plan is None or plan.status not in (*_NOT_MADE, "partly"):
        return replace(state, plan=plan)
    moved = {
        name: times
        if plan.status == "partly" and name not in left
        else tuple(at_ms for at_ms in times if at_ms != plan.published_at_ms)
        for name, times in state.moved_at_ms.items()
    }
    return replace(state, plan=plan, moved_at_ms={name: times for name, times in moved.items() if times})


def on_republished(
    state: GroupState, plan: PlanState, decision: Decision, *, done: int, valid_until_ms: int
) -> GroupState:
    """The state once its plan has been published again, for the group as it is now.

    Args:
        state: Before the publication.
        plan: The state's plan.
        decision: With epoch, base and time.
        done: Moves that are made already.
        valid_until_ms: When the plan expires, which may be earlier than the published record says.
    """
    republished = replace(
        plan,
        epoch=decision.epoch or 0,
        base_generation=decision.base_generation or 0,
        gives=decision.revoked,
        moves=done + len(decision.moves),
        migration=decision.migration,
        valid_until_ms=valid_until_ms,
        status="open",
        why=None,
        done=done,
        done_then=done,
    )
    return replace(state, plan=republished)


def on_published(
    state: GroupState, decision: Decision, group: Group, guards: Guards, *, now_ms: int
) -> GroupState:
    """The state once a new plan has been published: the group and the partitions that it moves cool down."""
    has_helped = helped(state.plan, group)
    longer_ms = min(2 * state.cooldown_ms, guards.cooldown_max_ms)
    length_ms = guards.cooldown_ms if has_helped else max(longer_ms, guards.cooldown_ms)
    plan = PlanState(
        epoch=decision.epoch or 0,
        base_generation=decision.base_generation or 0,
        target=decision.assignment or {},
        gives=decision.revoked,
        unassigned=decision.unassigned,
        moves=len(decision.moves),
        published_at_ms=now_ms,
        valid_until_ms=decision.valid_until_ms or 0,
        lag=int(group.lag.sum()),
        drain_s=decision.drain_s_after,
        migration=decision.migration,
        status_at_ms=now_ms,
    )
    return replace(
        state,
        confirmations=0,
        base_hash=None,
        cooldown_ms=length_ms,
        cooldown_until_ms=now_ms + length_ms,
        moved_at_ms=_moved(state, decision.moves, now_ms=now_ms),
        plan=plan,
    )


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
