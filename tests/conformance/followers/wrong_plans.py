"""Changes to a whole process that make it follow plans that are not for it, or say what is not so."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial

from assignor.clients.confluent.topics import FollowTopics
from assignor.clients.control import ControlState, Fed, Misfit
from assignor.clients.follower import plan as follower_plan
from assignor.clients.follower import rules
from assignor.clients.follower.state import FollowerState, Instant, Lost, Step
from assignor.clients.plugin.membership import Membership
from assignor.protocol.acks import AnyAck, Applied, Follows, Refused
from assignor.protocol.control import ControlRecord


def _considers(change: Callable[[FollowerState, ControlRecord], FollowerState]) -> None:
    """Before it decides on a plan, the member takes itself, or the plan, for another one."""

    def consider(state: FollowerState, now: Instant) -> Step:
        plan = state.offered
        return follower_plan.consider(state if plan is None else change(state, plan), now)

    rules._AFTER_EVERY_EVENT = tuple(
        consider if one is follower_plan.consider else one for one in rules._AFTER_EVERY_EVENT
    )


def _decides_anew(state: FollowerState, plan: ControlRecord) -> FollowerState:
    return replace(state, decided=0) if plan.epoch < state.decided else state


def _takes_for_its_generation(state: FollowerState, plan: ControlRecord) -> FollowerState:
    if plan.base_generation <= state.generation:
        return state
    return replace(state, offered=replace(plan, base_generation=state.generation))


def _overlooks(kind: Misfit) -> None:
    misfit = follower_plan.misfit

    def lenient(
        plan: ControlRecord, *, generation: int, member: str, owned: AbstractSet[tuple[str, int]]
    ) -> Misfit | None:
        why = misfit(plan, generation=generation, member=member, owned=owned)
        return None if why is kind else why

    follower_plan.misfit = lenient


def _overlooks_migration() -> None:
    follower_plan.why_not = lambda _: None


def _writes(change: Callable[[AnyAck], Iterable[AnyAck]]) -> None:
    """These in the place of each acknowledgement."""
    write = FollowTopics.write

    def writes(self: FollowTopics, ack: AnyAck) -> None:
        for one in change(ack):
            write(self, one)

    FollowTopics.write = writes  # type: ignore[method-assign]  # in the whole process


def _as_applied(ack: AnyAck) -> Applied:
    names = ("cluster", "group", "generation", "epoch", "member", "at_ms")
    return Applied(**{name: getattr(ack, name) for name in names})


def _ignores_losses() -> None:
    rules._HANDLERS = {**rules._HANDLERS, Lost: lambda state, _event, _now: (state, ())}


def _rejoins_without_moves() -> None:
    wants_rejoin = Membership.wants_rejoin

    def wants(self: Membership, now_ms: int) -> bool:
        plan = self._control.plan(now_ms) if self._control is not None else None
        is_new = plan is not None and plan.base_generation == self.generation and self._asked[0] != plan.epoch
        # The member itself asks once for a plan in a generation, and then looks at its moves.
        return wants_rejoin(self, now_ms) or is_new

    Membership.wants_rejoin = wants  # type: ignore[method-assign]  # in the whole process


def _rejoins_again() -> None:
    take, wants_rejoin = ControlState._take, Membership.wants_rejoin
    again: list[int] = []

    def takes(self: ControlState, record: ControlRecord) -> Fed:
        if record.epoch == self.epoch:
            again.append(record.epoch)
        return take(self, record)

    def wants(self: Membership, now_ms: int) -> bool:
        if again:
            again.clear()
            return True
        return wants_rejoin(self, now_ms)

    ControlState._take = takes  # type: ignore[method-assign]  # in the whole process
    Membership.wants_rejoin = wants  # type: ignore[method-assign]  # in the whole process


CHANGES: Mapping[str, Callable[[], None]] = {
    "any-base": partial(_overlooks, Misfit.BASE),
    "any-generation": partial(_overlooks, Misfit.GENERATION),
    "any-member": partial(_overlooks, Misfit.MEMBER),
    "any-migration": _overlooks_migration,
    "any-target": partial(_overlooks, Misfit.TARGET),
    "applied-at-once": partial(
        _writes, lambda ack: [ack, _as_applied(ack)] if isinstance(ack, Follows) else [ack]
    ),
    "applied-for-refused": partial(
        _writes, lambda ack: [_as_applied(ack) if isinstance(ack, Refused) else ack]
    ),
    "decides-anew": partial(_considers, _decides_anew),
    "does-not-wait": partial(_considers, _takes_for_its_generation),
    "ignores-losses": _ignores_losses,
    "never-applied": partial(_writes, lambda ack: [] if isinstance(ack, Applied) else [ack]),
    "other-epoch": partial(
        _writes, lambda ack: [replace(ack, epoch=ack.epoch + 1) if isinstance(ack, Applied) else ack]
    ),
    "other-generation": partial(
        _writes,
        lambda ack: [replace(ack, generation=ack.generation + 1) if isinstance(ack, Applied) else ack],
    ),
    "other-member": partial(
        _writes, lambda ack: [replace(ack, member=f"{ack.member}-1") if isinstance(ack, Applied) else ack]
    ),
    "refuses-twice": partial(_writes, lambda ack: [ack, ack] if isinstance(ack, Refused) else [ack]),
    "rejoins-again": _rejoins_again,
    "rejoins-without-moves": _rejoins_without_moves,
}
