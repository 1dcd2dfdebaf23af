"""A follower that hurts itself at a state of the hand-over, and one that forgets its tokens."""

import os
import signal
import time
from collections.abc import Mapping

from assignor.clients.confluent import Follower
from assignor.clients.follower_state import (
    Action,
    Assign,
    Commit,
    Committed,
    Event,
    FollowerState,
    Mark,
    Place,
    Token,
    Write,
)
from assignor.protocol.acks import Release, Taken
from tests.support.follow_log import OPTIONS, note

SESSION_S = 3.0


class Fragile(Follower):
    """Hurts itself once, just before an action that belongs to the chosen point: "stopped:KILL", "offered:STOP".

    The point may be chosen later, too, by `arm`. If it was stopped beyond its session, the commit that it then
    makes is a zombie's, and what becomes of it is noted.
    """

    _is_zombie = False

    def arm(self, hurt: str) -> None:
        """Hurt itself at the next such point."""
        OPTIONS["hurt"] = hurt

    def _carry_out_next(self) -> None:
        point, _, number = OPTIONS.get("hurt", "").partition(":")
        if point and self._is_at(point, self._todo[0]):
            OPTIONS.pop("hurt")
            note("hurt")
            stopped_s = time.monotonic()
            os.kill(os.getpid(), getattr(signal, f"SIG{number}"))
            self._is_zombie = time.monotonic() - stopped_s > SESSION_S
        super()._carry_out_next()
        self._is_zombie = False

    def _advance(self, event: Event) -> None:
        if self._is_zombie and isinstance(event, Committed):
            note("zombie", accepted=event.accepted, generation=self.state.generation)
        super()._advance(event)

    def _is_at(self, point: str, action: Action) -> bool:
        if isinstance(action, Write):
            return point == {Release: "committed", Taken: "taken"}.get(type(action.ack))
        stopping, checking = (bool(self.state.marked(mark)) for mark in (Mark.STOPPING, Mark.CHECK))
        if isinstance(action, Commit):
            return (point == "stopped" and stopping) or (point == "offered" and checking) or point == "commit"
        return isinstance(action, Assign) and point == "stopping" and stopping


def forget(_: FollowerState, base: frozenset[Place]) -> Mapping[Place, Token]:
    """In place of `restored_tokens`: the negative control."""
    return {place: Token(mark=Mark.HELD) for place in base}
