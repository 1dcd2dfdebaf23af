"""A follower that hurts itself at a state of the hand-over, and one that forgets its tokens."""

import os
import signal
import time
from collections.abc import Mapping
from typing import Any

from assignor.clients.confluent import Follower
from assignor.clients.confluent.steering import Steering
from assignor.clients.follower.state import (
    Action,
    Assign,
    Commit,
    Committed,
    Event,
    FollowerState,
    Mark,
    PartitionKey,
    Phase,
    Rejoin,
    Token,
    Write,
)
from assignor.protocol.acks import Release, Taken
from tests.support.followers.follow_log import OPTIONS, note

SESSION_S = 3.0


_PHASES = {"following": Phase.FOLLOW, "out-pending": Phase.OUT_PENDING}


class FragileSteering(Steering):
    """Hurts itself at chosen points, one after the other: "stopped:KILL", or "offered:STOP,out-pending:KILL".

    A point is just before an action, just behind a release, or the entry into a phase. It may be chosen later, too,
    by `arm`. If it was stopped beyond its session, the commit that it then makes is a zombie's, and what becomes of it
    is noted.
    """

    _is_zombie = False

    def _carry_out_next(self) -> None:
        action = self._todo[0]
        self._hurt_at(_points_before(action, self.state))
        super()._carry_out_next()
        if isinstance(action, Write) and isinstance(action.ack, Release) and _next_point() == "released":
            # Or it would be as if killed before it had said so.
            producer = self._side._writer._producer
            assert producer is not None
            producer.flush(5)
            self._hurt_at({"released"})
        if not isinstance(action, Commit):
            # The answer to a commit comes later.
            self._is_zombie = False

    def _advance(self, event: Event) -> None:
        if self._is_zombie and isinstance(event, Committed):
            note("zombie", accepted=event.accepted, generation=self.state.generation)
            self._is_zombie = False
        super()._advance(event)
        if self.state.phase is _PHASES.get(_next_point()):
            self._hurt_at({_next_point()})

    def _hurt_at(self, points: set[str]) -> None:
        first, _, later = str(OPTIONS.get("hurt", "")).partition(",")
        point, _, number = first.partition(":")
        if point not in points:
            return
        OPTIONS["hurt"] = later
        note("hurt", point=point)
        stopped_s = time.monotonic()
        os.kill(os.getpid(), getattr(signal, f"SIG{number}"))
        self._is_zombie = time.monotonic() - stopped_s > SESSION_S


class Fragile(Follower):
    """A follower with such a machine inside."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._steering.__class__ = FragileSteering

    def arm(self, hurt: str) -> None:
        """Hurt itself at the next such point."""
        OPTIONS["hurt"] = hurt

    def _subscribe(self) -> None:
        self._steering.subscribe()


def _next_point() -> str:
    return str(OPTIONS.get("hurt", "")).partition(":")[0]


def _points_before(action: Action, state: FollowerState) -> set[str]:
    """What is about to happen, by name."""
    stopping, checking = (bool(state.marked(mark)) for mark in (Mark.STOPPING, Mark.CHECK))
    match action:
        case Write(ack=Release()):
            return {"committed"}
        case Write(ack=Taken()):
            return {"taken"}
        case Commit():
            return {"commit", *(["stopped"] if stopping else []), *(["offered"] if checking else [])}
        case Assign() if stopping:
            return {"stopping"}
        case Rejoin():
            return {"rejoin"}
    return set()


def forget(_: FollowerState, base: frozenset[PartitionKey]) -> Mapping[PartitionKey, Token]:
    """In place of `restored_tokens`: the negative control."""
    return {place: Token(mark=Mark.HELD) for place in base}
