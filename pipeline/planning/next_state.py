"""What a decision leaves for the next one."""

from collections.abc import Collection
from dataclasses import replace

from assignor.model.group import Group
from pipeline.planning.facts import Decision, Move
from pipeline.planning.frozen import DAY_MS
from pipeline.planning.guards import Guards
from pipeline.planning.outcome import helped
from pipeline.planning.state import GroupState, PlanState, place

_NOT_MADE = ("refused", "superseded", "expired")


def counted(state: GroupState, base_hash: str | None) -> GroupState:
    """The state once a plan was found wanted for the group as this hash has it; None: it was not."""
    if base_hash is None:
        return replace(state, base_hash=None, confirmations=0)
    again = state.confirmations if base_hash == state.base_hash else 0
    return replace(state, base_hash=base_hash, confirmations=again + 1)


def judged(state: GroupState, plan: PlanState, *, left: Collection[str] = ()) -> GroupState:
    """The state with this outcome of its plan; what the plan was to move, and nobody has moved, needs no rest.

    Args:
        state: Before it.
        plan: Its plan.
        left: Places that are still with the member that the plan takes them from.
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


def continued(
    state: GroupState, plan: PlanState, decision: Decision, *, done: int, valid_until_ms: int
) -> GroupState:
    """The state once this plan, the state's own, has been published again for the group as it is.

    Args:
        state: Before it.
        plan: Its plan.
        decision: With epoch, base and time.
        done: Moves that need not be made any more.
        valid_until_ms: When the plan is over, which may be before the record that is published is.
    """
    again = replace(
        plan,
        epoch=decision.epoch or 0,
        base_generation=decision.base_generation or 0,
        gives=decision.gives,
        moves=done + len(decision.moves),
        migration=decision.migration,
        valid_until_ms=valid_until_ms,
        status="open",
        why=None,
        done=done,
        done_then=done,
    )
    return replace(state, plan=again)


def started(
    state: GroupState, decision: Decision, group: Group, guards: Guards, *, now_ms: int
) -> GroupState:
    """The state once another plan has been published: the group gets a pause, and what moves a rest."""
    has_helped = helped(state.plan, group)
    longer_ms = min(2 * state.cooldown_ms, guards.cooldown_max_ms)
    length_ms = guards.cooldown_ms if has_helped else max(longer_ms, guards.cooldown_ms)
    plan = PlanState(
        epoch=decision.epoch or 0,
        base_generation=decision.base_generation or 0,
        target=decision.assignment or {},
        gives=decision.gives,
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
        # What nobody had needs no rest: it was not taken from anyone.
        if move.from_member is not None:
            name = place(move.topic, move.partition)
            moved[name] = (*moved.get(name, ()), now_ms)
    return {name: times for name, times in moved.items() if times}
