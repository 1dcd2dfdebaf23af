"""Rules of a follower: ``advance(state, event, now) -> (state, actions)``, without a clock or a client.

Callers carry out actions in order. The event `Committed` answers `Commit`, and `Looked` answers `Look`, before any
other event; the other actions have no answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from assignor.clients.follower.plan import consider, note_applied, part_from_older, release_due
from assignor.clients.follower.state import (
    AcksSeen,
    Action,
    Assign,
    Assigned,
    Change,
    Committed,
    Event,
    FollowerState,
    Instant,
    Look,
    Looked,
    Lost,
    Mark,
    PartitionKey,
    Phase,
    PlanSeen,
    Rejoin,
    Revoked,
    Step,
    Tell,
    Tick,
    Token,
    TopicsAway,
    Transition,
    Unassign,
    Undelivered,
    Write,
)
from assignor.clients.follower.tokens import looked, read_acks, released, taken
from assignor.clients.follower.trouble import topics_away, undelivered, void

RESENDS = 3
"""A release is written this often, evenly over the take timeout, before the follower gives up."""

_AFTER_EVERY_EVENT: tuple[Transition, ...] = (
    read_acks,
    consider,
    part_from_older,
    release_due,
    note_applied,
)


def advance(state: FollowerState, event: Event, now: Instant) -> Step:
    """The next state, and what is to be done."""
    actions: list[Action] = []

    def handle(state: FollowerState, now: Instant) -> Step:
        return _HANDLERS[type(event)](state, event, now)

    for transition in (handle, *_AFTER_EVERY_EVENT):
        state, more = transition(state, now)
        actions += more
    return state, tuple(actions)


def _assigned(state: FollowerState, event: Assigned, now: Instant) -> Step:  # noqa: ARG001  # one signature for all
    again = (state.member, state.generation) == (event.member, event.generation)
    tokens = restored_tokens(state, event.places) if again else _fresh_tokens(event.places)
    # Its commit was sent, and Kafka may have taken it: then the new owner may read the partition.
    is_in_doubt = any(token.mark is Mark.STOPPING for token in tokens.values())
    # The old owner may believe that it is read here, if the commit was taken whose answer has not come.
    looking = state.looking | state.marked(Mark.CHECK) if again and not is_in_doubt else frozenset()
    state = replace(
        state,
        phase=Phase.REJOIN if is_in_doubt else Phase.BASE,
        member=event.member,
        generation=event.generation,
        base=event.places,
        tokens=tokens,
        accepted=state.accepted if again else {},
        unmarked=state.unmarked if again else {},
        due=state.due if again else {},
        looking=looking,
        decided=0,
        plan=None,
        targets={},
        applied=False,
    )
    read = (Assign(places=state.held), Tell(change=Change.GAINED, places=state.held))
    if is_in_doubt:
        return state, (*read, Rejoin())
    return state, (*read, Look(places=looking)) if looking else read


def _fresh_tokens(base: frozenset[PartitionKey]) -> Mapping[PartitionKey, Token]:
    return {key: Token(mark=Mark.HELD) for key in base}


def restored_tokens(state: FollowerState, base: frozenset[PartitionKey]) -> Mapping[PartitionKey, Token]:
    """Tokens when the same generation is assigned to the same member again.

    Nobody else has noticed: what it gave away is still theirs, and what it took still its own.
    """
    kept = {key: _rolled_back(token) for key, token in state.tokens.items()}
    return {**_fresh_tokens(base), **kept}


def _rolled_back(token: Token) -> Token:
    # What was offered is not read here yet.
    return Token(mark=Mark.GONE, hop=token.hop) if token.mark is Mark.CHECK else token


def _revoked(state: FollowerState, event: Revoked, now: Instant) -> Step:  # noqa: ARG001  # one signature for all
    if state.phase is Phase.OUT:
        return state, ()
    # The user may still commit: the old generation is valid until this member joins the next one.
    told = Tell(change=Change.REVOKED, places=state.held)
    return _out(state), (told, Unassign(), *void(state, "revoked", now))


def _lost(state: FollowerState, event: Lost, now: Instant) -> Step:  # noqa: ARG001  # one signature for all
    if state.phase is Phase.OUT:
        return state, ()
    told = Tell(change=Change.LOST, places=state.held)
    return replace(_out(state), generation=-1), (Unassign(), *void(state, "lost", now), told)


def _out(state: FollowerState) -> FollowerState:
    return replace(state, phase=Phase.OUT, plan=None, targets={})


def _plan_seen(state: FollowerState, event: PlanSeen, now: Instant) -> Step:
    state = replace(state, offered=event.plan)
    if event.plan is not None or state.phase is not Phase.FOLLOW:
        return state, ()
    voided = () if state.applied else void(state, "the plan is withdrawn or over", now)
    return replace(state, phase=Phase.BASE, plan=state.plan if state.applied else None), voided


def _acks_seen(state: FollowerState, event: AcksSeen, now: Instant) -> Step:  # noqa: ARG001  # one signature for all
    # Between two generations the next one's may arrive before it is assigned here.
    current = tuple(ack for ack in event.acks if ack.generation >= state.generation)
    return replace(state, inbox=state.inbox + current), ()


def _committed(state: FollowerState, event: Committed, now: Instant) -> Step:
    if event.accepted:
        return released(state, event.offsets, now) if state.marked(Mark.STOPPING) else taken(state, now)
    pending = replace(state, phase=Phase.OUT_PENDING, plan=None, pending_since_s=now.monotonic_s)
    return pending, void(state, "commit refused", now)


def _tick(state: FollowerState, event: Tick, now: Instant) -> Step:  # noqa: ARG001  # one signature for all
    in_doubt_s = now.monotonic_s - state.pending_since_s
    if state.phase is Phase.OUT_PENDING and in_doubt_s >= state.settings.doubt_timeout_s:
        return replace(state, phase=Phase.REJOIN), (Rejoin(),)
    if not state.settled:
        return state, ()
    silent = {
        key: token
        for key, token in state.tokens.items()
        if token.mark is Mark.RELEASED
        and now.monotonic_s - token.sent_s >= state.settings.take_timeout_s / RESENDS
    }
    if not silent:
        # As nearly always, a hundred times a second.
        return state, ()
    if any(token.sends >= RESENDS for token in silent.values()):
        voided = void(state, "a release was not taken", now)
        return replace(state, phase=Phase.REJOIN, plan=None), (*voided, Rejoin())
    return _written_again(state, silent, now)


def _written_again(state: FollowerState, silent: Mapping[PartitionKey, Token], now: Instant) -> Step:
    resent = {
        key: replace(token, sends=token.sends + 1, sent_s=now.monotonic_s) for key, token in silent.items()
    }
    writes = tuple(Write(ack=release) for key in sorted(silent) if (release := silent[key].release))
    return replace(state, tokens={**state.tokens, **resent}), writes


_HANDLERS: Mapping[type[Any], Callable[[FollowerState, Any, Instant], Step]] = {
    Assigned: _assigned,
    Revoked: _revoked,
    Lost: _lost,
    PlanSeen: _plan_seen,
    AcksSeen: _acks_seen,
    Looked: looked,
    Committed: _committed,
    TopicsAway: topics_away,
    Undelivered: undelivered,
    Tick: _tick,
}
