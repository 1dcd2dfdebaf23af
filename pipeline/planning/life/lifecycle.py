"""The life of a plan: the events that an evaluation observes of the newest published plan, and their consequences.

A plan that waits for approval has the first column of the table; `waiting` observes it.

One table, state by event; `deploy/docs/architecture.md` draws it. An evaluation observes one event, the first of
`Event` that applies; the table says how the plan ends by it, if it does, and what is done about the group.

The group is brought back to the target of a plan that its members have taken when Kafka has rebalanced it away,
as long as the target still helps: lent placement is no state that Kafka keeps (`Action.RETURN`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from assignor.protocol.migration import Migration
from pipeline.planning import broker_reasons, reasons
from pipeline.planning.progress import PlanProgress
from pipeline.planning.state import PlanState, PlanStatus


class Phase(Enum):
    """Phase in the life of a plan."""

    AWAITING = auto()
    """Not published: it waits for an operator's approval."""
    OFFERED = auto()
    """Published; no member has accepted it."""
    UNDER_WAY = auto()
    """A member has accepted it, or a partition has changed hands by it."""
    APPLIED = auto()
    """Every partition has reached its target."""
    ENDED = auto()
    """Over before that: partly, refused, superseded or expired."""


class Event(Enum):
    """Event that an evaluation observes; if several apply, the first in this order."""

    OTHER_PLAN = auto()
    """The control topic holds another plan, or this one was never sent; members follow another while this one waits."""
    PINNED = auto()
    """It moves partitions that are pinned now."""
    MEMBERS_CHANGED = auto()
    """The target does not fit the members, the subscriptions or the partitions any more."""
    ARRIVED = auto()
    """Every partition is at its target."""
    REFUSED = auto()
    """A member refuses the newest publication, no member has accepted it, and nothing has moved since."""
    EXPIRED = auto()
    """It is open and its time is up."""
    OTHER_TARGET = auto()
    """The broker, which assigns the group, has made another target assignment than the plan's."""
    STUCK = auto()
    """Members are between two target assignments, and one of them for longer than its rebalance timeout."""
    RECONCILING = auto()
    """Members are between two target assignments, or the broker is about to make the next one."""
    REBALANCED = auto()
    """Kafka has made a new generation in which partitions are elsewhere; none is on its way."""
    NEEDLESS = auto()
    """It waits, and what it was made for is over."""
    APPROVED = auto()
    """It waits, and an operator has approved it."""
    TRIGGERED = auto()
    """It waits, and an operator wants another."""
    MIGRATION_NEWS = auto()
    """Members must learn that migration to KIP-848 became possible, or is no longer possible."""
    IGNORED = auto()
    """Some have accepted, nothing has moved; a member that the plan needs has not answered while the group settled.

    When it reads the plan at last, all of them would follow it, so an ended plan must not stay on the topic. One that
    is half made goes on to its end: withdrawn, it would leave the group between two assignments."""
    AGED = auto()
    """Half of its time is over, and publishing it again may give it more."""
    QUIET = auto()
    """None of these."""


class Action(Enum):
    """Action for the group."""

    WAIT = auto()
    """Leave it alone."""
    PUBLISH = auto()
    """Publish it as it was approved, past the guards, which it has passed."""
    PLAN = auto()
    """Ask the strategy; guards decide."""
    RETURN = auto()
    """Publish the target again if it still helps, or else plan."""
    RESEND = auto()
    """Publish the target again, for the present group."""
    WITHDRAW = auto()
    """Take the plan back."""


@dataclass(frozen=True, slots=True)
class Step:
    """An entry of the table."""

    action: Action
    ends: PlanStatus | None = None
    """How an open plan ends; `partly` if something has moved."""
    drops: bool = False
    """The group is not brought back to the target later."""


_PLAN, _WAIT = Step(Action.PLAN), Step(Action.WAIT)
_RETURN, _RESEND = Step(Action.RETURN), Step(Action.RESEND)
_DROP = Step(Action.PLAN, drops=True)
_WITHDRAWN = Step(Action.WITHDRAW, "superseded", drops=True)
_FORGOTTEN = Step(Action.PLAN, "superseded", drops=True)
_REFUSED = Step(Action.PLAN, "refused", drops=True)
_APPLIED = Step(Action.PLAN, "applied")
_REPLACED = Step(Action.PLAN, "superseded")
_EXPIRED = Step(Action.PLAN, "expired")

_COLUMNS: Final = (Phase.AWAITING, Phase.OFFERED, Phase.UNDER_WAY, Phase.APPLIED, Phase.ENDED)
_ROWS: Final = {
    # Event              AWAITING, OFFERED, UNDER_WAY, APPLIED, ENDED
    Event.OTHER_PLAN: (_REPLACED, _FORGOTTEN, _FORGOTTEN, _DROP, _DROP),
    Event.PINNED: (_REPLACED, _WITHDRAWN, _WITHDRAWN, _WITHDRAWN, _WITHDRAWN),
    Event.MEMBERS_CHANGED: (_REPLACED, _REPLACED, _REPLACED, _PLAN, _PLAN),
    Event.ARRIVED: (_REPLACED, _APPLIED, _APPLIED, _PLAN, _PLAN),
    Event.REFUSED: (_WAIT, _REFUSED, _REFUSED, _PLAN, _PLAN),
    Event.EXPIRED: (_EXPIRED, _EXPIRED, Step(Action.RETURN, "expired"), _PLAN, _PLAN),
    Event.OTHER_TARGET: (_WAIT, _REPLACED, _REPLACED, _PLAN, _PLAN),
    Event.STUCK: (_WAIT, _WAIT, _WAIT, _PLAN, _PLAN),
    Event.RECONCILING: (_WAIT, _WAIT, _WAIT, _PLAN, _PLAN),
    Event.REBALANCED: (_REPLACED, _REPLACED, _RETURN, _RETURN, _RETURN),
    Event.NEEDLESS: (_REPLACED, _WAIT, _WAIT, _PLAN, _PLAN),
    Event.APPROVED: (Step(Action.PUBLISH), _WAIT, _WAIT, _PLAN, _PLAN),
    Event.TRIGGERED: (_REPLACED, _WAIT, _WAIT, _PLAN, _PLAN),
    Event.MIGRATION_NEWS: (_WAIT, _RESEND, _RESEND, _RESEND, _PLAN),
    Event.IGNORED: (_WAIT, _WITHDRAWN, _WITHDRAWN, _PLAN, _PLAN),
    Event.AGED: (_WAIT, _PLAN, _RESEND, _PLAN, _PLAN),
    Event.QUIET: (_WAIT, _WAIT, _WAIT, _PLAN, _PLAN),
}
TABLE: Final = {
    (phase, event): step for event, row in _ROWS.items() for phase, step in zip(_COLUMNS, row, strict=True)
}
"""State by event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Observation of a plan and its group."""

    progress: PlanProgress | None
    """Progress towards the target; None if the target no longer fits the group."""
    generation: int | None
    is_on_topic: bool
    """The newest record of the control topic is this plan's."""
    is_pinned: bool
    """See `Event.PINNED`."""
    accepted: bool
    """A member has accepted the newest publication, or the broker has made it its target assignment."""
    refusal: str | None
    """The first refusal of the newest publication."""
    silent: tuple[str, ...]
    """See `Event.IGNORED`; members."""
    migration: Migration
    is_reconciling: bool = False
    """See `Event.RECONCILING`."""
    is_stuck: bool = False
    """See `Event.STUCK`."""
    has_other_target: bool = False
    """See `Event.OTHER_TARGET`."""
    is_by_broker: bool = False
    """The broker assigns the group."""
    follows_within: bool
    """The group's members may follow within a generation, and so look at migration."""
    now_ms: int
    valid_for_ms: int


def phase_of(plan: PlanState) -> Phase:
    """The phase of a published plan, from its status."""
    if plan.status == "applied":
        return Phase.APPLIED
    if plan.status != "open":
        return Phase.ENDED
    return Phase.UNDER_WAY if plan.is_adopted else Phase.OFFERED


def advance(plan: PlanState, sight: Sight) -> tuple[PlanState, Action]:
    """The plan after this evaluation, and what to do about the group."""
    plan = _adopted(_reopened(plan, sight), sight)
    event, phase = observe(plan, sight), phase_of(plan)
    step = TABLE[phase, event]
    if step.ends is not None:
        plan = ended(plan, step.ends, _cause(event, plan, sight), now_ms=sight.now_ms)
    # A plan by which nothing moved in its time would be published for ever.
    stands_still = event is Event.EXPIRED and plan.done == plan.done_then
    if step.drops or stands_still:
        plan = replace(plan, is_dropped=True)
    return plan, step.action


def observe(plan: PlanState, sight: Sight) -> Event:
    """The first event that applies."""
    progress = sight.progress
    if not sight.is_on_topic:
        return Event.OTHER_PLAN
    if progress is None:
        return Event.PINNED if sight.is_pinned and plan.is_restored else Event.MEMBERS_CHANGED
    applying = (event for applies, event in _events(plan, sight, progress) if applies)
    return next(applying, Event.QUIET)


def _events(plan: PlanState, sight: Sight, progress: PlanProgress) -> Iterator[tuple[bool, Event]]:
    """Whether each event applies, in their order."""
    is_open, is_news = plan.status == "open", _is_news(plan, sight, progress)
    yield sight.is_pinned, Event.PINNED
    yield progress.is_there and not is_news and not sight.is_reconciling, Event.ARRIVED
    yield _is_refused(plan, sight), Event.REFUSED
    # What the broker has taken goes on, whatever the time.
    is_taken = sight.is_reconciling and sight.accepted
    yield is_open and sight.now_ms >= plan.valid_until_ms and not is_taken, Event.EXPIRED
    yield sight.has_other_target, Event.OTHER_TARGET
    yield sight.is_reconciling and sight.is_stuck, Event.STUCK
    yield sight.is_reconciling, Event.RECONCILING
    yield _is_rebalanced(plan, sight, progress), Event.REBALANCED
    yield is_news, Event.MIGRATION_NEWS
    yield is_open and bool(sight.silent) and plan.done == 0, Event.IGNORED
    yield _may_be_renewed(plan, sight, progress), Event.AGED


def _is_refused(plan: PlanState, sight: Sight) -> bool:
    stands_still = plan.done == plan.done_then
    return plan.status == "open" and sight.refusal is not None and not sight.accepted and stands_still


def _is_rebalanced(plan: PlanState, sight: Sight, progress: PlanProgress) -> bool:
    if progress.is_between or progress.is_there:
        return False
    if sight.is_by_broker and plan.status == "open":
        # Group epochs rise without a move, and the broker takes the plan at any of them.
        return progress.is_off
    return sight.generation != plan.base_generation or (plan.status == "open" and progress.is_off)


def _may_be_renewed(plan: PlanState, sight: Sight, progress: PlanProgress) -> bool:
    is_half_over = 2 * (plan.valid_until_ms - sight.now_ms) <= sight.valid_for_ms
    phase = phase_of(plan)
    if phase is Phase.OFFERED:
        return is_half_over
    # While a partition is between two members, no follower has what a publication would start from.
    is_moving = plan.done > plan.done_then and not progress.is_between
    return phase is Phase.UNDER_WAY and is_half_over and is_moving


def _is_news(plan: PlanState, sight: Sight, progress: PlanProgress) -> bool:
    """Whether migration differs from the newest publication, for members that look at it.

    An applied plan is published again only when migration has become possible: hand-overs must then be undone.
    """
    if progress.is_between or not sight.follows_within or sight.migration == plan.migration:
        return False
    if plan.status == "open" and not progress.is_there:
        return True
    return sight.migration == "possible" and plan.is_restored and plan.status == "applied"


def _reopened(plan: PlanState, sight: Sight) -> PlanState:
    """The plan, open again if it expired while nobody looked at the group, which is at the target at the first look."""
    is_first_look = plan.effect is None and reasons.EXPIRED_UNSEEN in (plan.why or "")
    is_there = sight.progress is not None and sight.progress.is_there and not sight.is_reconciling
    if plan.status == "open" or not (is_first_look and is_there and sight.is_on_topic):
        return plan
    # A plan that takes another back is never restored.
    return replace(plan, status="open", is_dropped=plan.takes_back is not None)


def _adopted(plan: PlanState, sight: Sight) -> PlanState:
    """An open plan with what members have said and done since."""
    if plan.status != "open":
        return plan
    progress = sight.progress
    done = max(progress.done, 0) if progress is not None and not progress.is_off else 0
    return replace(
        plan,
        is_adopted=plan.is_adopted or sight.accepted or done > 0,
        done=max(done, plan.done),
    )


def ended(plan: PlanState, status: PlanStatus, why: str, *, now_ms: int) -> PlanState:
    """The plan, ended for this cause if it is still open; `partly` if something has moved."""
    if plan.status != "open":
        return plan
    if status != "applied" and plan.done > 0:
        status, why = "partly", reasons.partly_made(plan.done, plan.moves, why)
    return replace(plan, status=status, why=why, status_at_ms=now_ms)


def expired(plan: PlanState | None, refusal: str | None, *, now_ms: int) -> PlanState | None:
    """The plan of a group that cannot be looked at, ended if its time is up; if it was applied, `advance` sees it."""
    if plan is None or plan.status != "open" or now_ms < plan.valid_until_ms:
        return plan
    why = _expiry(reasons.EXPIRED_UNSEEN, refusal)
    return replace(ended(plan, "expired", why, now_ms=now_ms), is_dropped=True)


def _expiry(cause: str, refusal: str | None) -> str:
    return "; ".join(each for each in (cause, refusal) if each)


def _cause(event: Event, plan: PlanState, sight: Sight) -> str:
    causes = {
        Event.OTHER_PLAN: reasons.OTHER_PLAN_PUBLISHED,
        Event.PINNED: reasons.NOW_PINNED,
        Event.MEMBERS_CHANGED: reasons.GROUP_CHANGED,
        Event.ARRIVED: reasons.all_made(plan.moves),
        Event.REFUSED: sight.refusal or "",
        Event.EXPIRED: _expiry(reasons.EXPIRED, sight.refusal),
        Event.OTHER_TARGET: broker_reasons.OTHER_TARGET,
        Event.REBALANCED: reasons.REBALANCED_BEFORE_ACCEPTED,
        Event.IGNORED: reasons.not_answered(sight.silent),
    }
    return causes[event]
