"""Followers that break one rule each; the kit has to say which."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from confluent_kafka import TopicPartition

from assignor.clients.confluent import Follower
from assignor.clients.confluent.steering import Steering
from assignor.clients.follower import plan as follower_plan
from assignor.clients.follower import rules
from assignor.clients.follower.state import (
    AcksSeen,
    Assign,
    Change,
    Commit,
    Committed,
    Event,
    FollowerState,
    Found,
    Instant,
    Look,
    Looked,
    PartitionKey,
    Phase,
    Step,
    Tell,
)
from assignor.clients.kafka_python import assignors as of_kafka_python
from assignor.protocol.acks import Release
from assignor.protocol.marks import HandOverMark
from tests.conformance.followers import wrong_plans, wrong_reading


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


class _Believing(Steering):
    """Takes the newest release that it has heard of for what the group has committed."""

    def _heard(self) -> Event | None:
        event = super()._heard()
        for ack in event.acks if isinstance(event, AcksSeen) else ():
            if isinstance(ack, Release) and ack.to == self.state.member:
                self.__dict__.setdefault("_releases", {})[ack.topic, ack.partition] = ack
        return event

    def _carry_out_next(self) -> None:
        action = self._todo[0]
        if not isinstance(action, Look):
            super()._carry_out_next()
            return
        self._todo.popleft()
        releases: dict[PartitionKey, Release] = self.__dict__.get("_releases", {})
        believed = {key: _as_committed(releases[key]) for key in action.places & releases.keys()}
        # Others have taken what was given to them: no mark of its own stands there.
        given = {key: Found(offset=0) for key in action.places - releases.keys()}
        self._advance(Looked(found={**believed, **given}))


class _Uncommitted(_Believing):
    """Releases what it has not committed."""

    def _carry_out_next(self) -> None:
        action = self._todo[0]
        if isinstance(action, Commit) and None in action.offsets.values():
            self._todo.popleft()
            finished = self._reading.commits.finished
            self._advance(
                Committed(accepted=True, offsets={key: finished[key].offset for key in action.offsets})
            )
            return
        super()._carry_out_next()


def _as_committed(release: Release) -> Found:
    mark = HandOverMark(kind="release", generation=release.generation, epoch=release.epoch, hop=release.hop)
    return Found(offset=release.offset, mark=mark)


class _BelievesRecords(Follower):
    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]  # passed on as they come
        self._steering.__class__ = _Believing


class _GivesUncommitted(Follower):
    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]  # passed on as they come
        self._steering.__class__ = _Uncommitted


class _KeepsReading(Follower):
    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]  # passed on as they come
        self._steering.__class__ = _Keeping

    def commit(self, *_: object, **__: object) -> list[TopicPartition] | None:
        """Of what it does not give away: its commit would lie over the mark, and nobody would take anything."""
        positions, held = self._reading.positions, self.state.held
        return super().commit(
            offsets=[TopicPartition(*key, positions[key]) for key in held & positions.keys()]
        )


class _TakesUnproven(Follower):
    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]  # passed on as they come
        self._steering.__class__ = _Unproven


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


FOLLOWERS: Mapping[str, type[Follower]] = {
    "believes-records": _BelievesRecords,
    "gives-uncommitted": _GivesUncommitted,
    "keeps-reading": _KeepsReading,
    "takes-unproven": _TakesUnproven,
}
"""Of confluent-kafka."""

CHANGES: Mapping[str, Callable[[], None]] = {
    **wrong_reading.CHANGES,
    **wrong_plans.CHANGES,
    "impatient": _is_impatient,
    "silent": _is_silent,
}
"""To the whole process."""
