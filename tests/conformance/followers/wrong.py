"""Followers that break one rule each; the kit has to say which."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from assignor.clients.confluent import Follower
from assignor.clients.confluent.steering import Steering
from assignor.clients.control import ControlState
from assignor.clients.follower import plan as follower_plan
from assignor.clients.follower import rules
from assignor.clients.follower.state import (
    Assign,
    Change,
    Commit,
    Committed,
    FollowerState,
    Instant,
    Phase,
    Step,
    Tell,
)
from assignor.clients.kafka_python import assignors as of_kafka_python


class _Keeping(Steering):
    """Goes on reading what it gives away, and does not tell its user."""

    def _carry_out_next(self) -> None:
        action = self._todo[0]
        if isinstance(action, Assign):
            self._todo[0] = replace(action, places=action.places | self._reading.positions.keys())
        elif (
            isinstance(action, Tell) and action.change is Change.REVOKED and self.state.phase is Phase.FOLLOW
        ):
            self._todo.popleft()
            return
        super()._carry_out_next()


class _Unproven(Steering):
    """Takes what is released to it without a commit: it may have slept through a rebalance."""

    def _carry_out_next(self) -> None:
        action = self._todo[0]
        if isinstance(action, Commit) and None not in action.offsets.values():
            self._todo.popleft()
            offsets = {key: offset for key, offset in action.offsets.items() if offset is not None}
            self._advance(Committed(accepted=True, offsets=offsets))
            return
        super()._carry_out_next()


class _KeepsReading(Follower):
    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]  # passed on as they come
        self._steering.__class__ = _Keeping


class _TakesUnproven(Follower):
    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]  # passed on as they come
        self._steering.__class__ = _Unproven


def _never_expires() -> None:
    newest = ControlState.newest
    ControlState.newest = lambda self, _now_ms: newest(self, 0)  # type: ignore[method-assign]  # in the whole process


def _is_impatient() -> None:
    """Gives as soon as the new owner has accepted."""

    def release_due(state: FollowerState, now: Instant) -> Step:
        agreed = state if state.plan is None else replace(state, agreed=state.plan.epoch)
        return follower_plan.release_due(agreed, now)

    rules._AFTER_EVERY_EVENT = tuple(
        release_due if one is follower_plan.release_due else one for one in rules._AFTER_EVERY_EVENT
    )


def _is_silent() -> None:
    """A cooperative member that does not say what it still reads."""
    of_kafka_python.MemberAssignor._held = lambda _: {}  # type: ignore[method-assign]  # in the whole process


FOLLOWERS: Mapping[str, type[Follower]] = {"keeps-reading": _KeepsReading, "takes-unproven": _TakesUnproven}
"""Of confluent-kafka."""

CHANGES: Mapping[str, Callable[[], None]] = {
    "never-expires": _never_expires,
    "impatient": _is_impatient,
    "silent": _is_silent,
}
"""To the whole process."""
