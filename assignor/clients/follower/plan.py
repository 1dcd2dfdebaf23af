"""The plan of a group, as one of its members follows it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assignor.clients.control import Misfit, misfit, named_in_moves, targets
from assignor.clients.follower.state import (
    Assign,
    Change,
    Commit,
    FollowerState,
    Instant,
    Mark,
    PartitionKey,
    Phase,
    Rejoin,
    Step,
    Tell,
    Token,
    Write,
)
from assignor.clients.follower.trouble import void
from assignor.protocol.acks import Applied, Follows, Refused, Release
from assignor.protocol.control import ControlRecord
from assignor.protocol.marks import HandOverMark
from assignor.protocol.migration import why_not

_PLANS_REMEMBERED = 16
"""After this many further plans, a rebalance finishes a hand-over that is still open."""


def consider(state: FollowerState, now: Instant) -> Step:
    """Accept or refuse a plan that is newer than the last one decided on, once in a generation."""
    plan = state.offered
    if plan is None or not state.settled or plan.epoch <= state.decided:
        return state, ()
    if plan.base_generation > state.generation:
        # Others are in that generation already; it is decided on when this member gets there.
        return state, ()
    why = _why_not(state, plan)
    if why is not None:
        return _refuse(state, plan, why, now)
    state = replace(
        state,
        phase=Phase.FOLLOW,
        decided=plan.epoch,
        plan=plan,
        targets=targets(plan),
        needed=named_in_moves(plan),
        applied=False,
        due=_due(state, plan),
        cluster=plan.cluster,
    )
    return state, (Write(ack=Follows(**_head(state, plan, now))),)


def _refuse(state: FollowerState, plan: ControlRecord, why: str, now: Instant) -> Step:
    # Then a KIP-848 member that joins would give what is handed over a second owner.
    is_unsafe = plan.migration == "possible" and not state.settings.despite_migration
    if is_unsafe and state.waiting:
        # The answer to the commit says whether the partition is handed over.
        return state, ()
    state = replace(state, decided=plan.epoch)
    refused = Write(ack=Refused(**_head(state, plan, now), why=why))
    if is_unsafe and state.held != state.base:
        return replace(state, phase=Phase.REJOIN, plan=None), (refused, Rejoin())
    # Those of an earlier plan who wait for this member's partitions need not.
    return replace(state, phase=Phase.BASE), (refused,)


def part_from_older(state: FollowerState, now: Instant) -> Step:
    """Follow no plan that needs a member whose commits have no marks: what it gave would never be taken."""
    plan = state.plan
    if plan is None or state.phase is not Phase.FOLLOW or state.applied or state.agreed == plan.epoch:
        return state, ()
    why = _needs_older(state, plan)
    if why is None:
        return state, ()
    return replace(state, phase=Phase.BASE, plan=None), void(state, why, now)


def release_due(state: FollowerState, now: Instant) -> Step:
    """Once all needed members have accepted the plan, stop what it takes from this one.

    All of it in one go, with one commit.
    """
    plan = state.plan
    if plan is None or state.phase is not Phase.FOLLOW or state.waiting or state.agreed != plan.epoch:
        return state, ()
    due = {key: to for key in sorted(state.held) if (to := _ready_new_owner(state, plan, key)) is not None}
    if not due:
        return state, ()
    stopping = {key: _stopping(state, plan, key, to, now) for key, to in due.items()}
    marks = {
        key: HandOverMark(
            kind="release", generation=state.generation, epoch=plan.epoch, hop=state.tokens[key].hop + 1
        )
        for key in due
    }
    state = replace(state, tokens={**state.tokens, **stopping})
    told = Tell(change=Change.REVOKED, places=frozenset(due))
    return state, (told, Assign(places=state.held), Commit(offsets=dict.fromkeys(due), marks=marks))


def note_applied(state: FollowerState, now: Instant) -> Step:
    """Say once that the member has its target, and that all it gave was taken."""
    plan = state.plan
    if plan is None or state.phase is not Phase.FOLLOW or state.applied or state.waiting:
        return state, ()
    wanted = {key for key, member in state.targets.items() if member == state.member}
    if state.held != wanted or state.marked(Mark.RELEASED):
        return state, ()
    return replace(state, applied=True), (Write(ack=Applied(**_head(state, plan, now))),)


def _why_not(state: FollowerState, plan: ControlRecord) -> str | None:
    unsafe = why_not(plan.migration)
    if unsafe is not None and not state.settings.despite_migration:
        return unsafe
    if state.settings.static:
        return "static"
    older = _needs_older(state, plan)
    if older is not None:
        return older
    why = misfit(plan, generation=state.generation, member=state.member, owned=state.base)
    if why is Misfit.BASE:
        # In a generation that has moved on, a plan may as well start from where its partitions are now.
        why = misfit(plan, generation=state.generation, member=state.member, owned=state.held)
    return why.value if why else _gives_foreign(state, plan)


def _gives_foreign(state: FollowerState, plan: ControlRecord) -> str | None:
    subscribed = state.settings.topics
    if subscribed is None:
        return None
    given = {topic for (topic, _), member in targets(plan).items() if member == state.member}
    foreign = sorted(given - subscribed)
    return f"target has topic {foreign[0]}, which this member does not subscribe to" if foreign else None


def _needs_older(state: FollowerState, plan: ControlRecord) -> str | None:
    older = sorted(m for m in named_in_moves(plan) if state.unmarked.get(m) == plan.epoch)
    return f"{older[0]} does not mark its commits: replace it by version 0.2 or later" if older else None


def _due(state: FollowerState, plan: ControlRecord) -> Mapping[PartitionKey, tuple[int, ...]]:
    mine = (key for key, member in targets(plan).items() if member == state.member and key not in state.held)
    newly = {key: (*state.due.get(key, ()), plan.epoch)[-_PLANS_REMEMBERED:] for key in mine}
    return {**state.due, **newly}


def _ready_new_owner(state: FollowerState, plan: ControlRecord, key: PartitionKey) -> str | None:
    to = state.targets.get(key)
    return to if to != state.member and to is not None and state.accepted.get(to) == plan.epoch else None


def _stopping(state: FollowerState, plan: ControlRecord, key: PartitionKey, to: str, now: Instant) -> Token:
    hop = state.tokens[key].hop
    topic, partition = key
    draft = Release(**_head(state, plan, now), to=to, topic=topic, partition=partition, hop=hop + 1, offset=0)
    return Token(mark=Mark.STOPPING, hop=hop, release=draft)


def _head(state: FollowerState, plan: ControlRecord, now: Instant) -> Mapping[str, Any]:
    return {
        "cluster": plan.cluster,
        "group": state.settings.group,
        "generation": state.generation,
        "epoch": plan.epoch,
        "member": state.member,
        "at_ms": now.wall_ms,
    }
