"""The table of a plan's life: every state meets every event, and each event is observed where it should be."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from assignor.model.assignment import Assignment
from pipeline.planning.life.lifecycle import TABLE, Action, Event, Phase, Sight, advance, observe, phase_of
from pipeline.planning.progress import PlanProgress
from pipeline.planning.state import PlanState

SENT_MS, VALID_MS = 1_000_000, 600_000

PLANS = {
    Phase.OFFERED: {"status": "open"},
    Phase.UNDER_WAY: {"status": "open", "is_adopted": True},
    Phase.APPLIED: {"status": "applied", "is_adopted": True, "done": 2},
    Phase.ENDED: {"status": "partly", "is_adopted": True, "done": 1},
}


def plan(phase: Phase, **changes: object) -> PlanState:
    made = PlanState(
        epoch=3,
        base_generation=4,
        target={"a": {"t": "0"}, "b": {"t": "1"}},
        revoked={"a": {"t": "1"}},
        moves=2,
        published_at_ms=SENT_MS,
        sent_at_ms=SENT_MS,
        valid_until_ms=SENT_MS + VALID_MS,
        lag=10,
        drain_s=None,
        status_at_ms=SENT_MS,
    )
    return replace(made, **PLANS[phase], **changes)  # type: ignore[arg-type]  # the test knows their types


def progress(done: int = 0, *, off: bool = False, between: bool = False) -> PlanProgress:
    target = Assignment(member=np.zeros(2, np.int32), why=np.zeros(2, np.int8))
    return PlanProgress(
        target=target, moves=2, done=done, is_off=off, is_between=between, left=lambda: frozenset({"t:1"})
    )


def sight(**changes: object) -> Sight:
    made = Sight(
        progress=progress(),
        generation=4,
        is_on_topic=True,
        is_pinned=False,
        accepted=False,
        refusal=None,
        silent=(),
        migration="unknown",
        follows_within=True,
        now_ms=SENT_MS + 1000,
        valid_for_ms=VALID_MS,
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # the test knows their types


SIGHTS = {
    Event.OTHER_PLAN: sight(is_on_topic=False, is_pinned=True),
    Event.PINNED: sight(is_pinned=True),
    Event.MEMBERS_CHANGED: sight(progress=None, generation=5),
    Event.ARRIVED: sight(progress=progress(2), generation=5),
    Event.REFUSED: sight(refusal="member a refused it: static"),
    Event.EXPIRED: sight(now_ms=SENT_MS + VALID_MS),
    Event.OTHER_TARGET: sight(is_reconciling=True, has_other_target=True),
    Event.STUCK: sight(is_reconciling=True, is_stuck=True),
    Event.RECONCILING: sight(progress=progress(2), is_reconciling=True),
    Event.REBALANCED: sight(generation=5),
    Event.MIGRATION_NEWS: sight(migration="possible"),
    Event.IGNORED: sight(silent=("b",)),
    Event.AGED: sight(now_ms=SENT_MS + VALID_MS // 2),
    Event.QUIET: sight(),
}
ONLY_WHILE_WAITING = {Event.NEEDLESS, Event.APPROVED, Event.TRIGGERED}
PUBLISHED = [
    (phase, event)
    for phase, event in TABLE
    if phase is not Phase.AWAITING and event not in ONLY_WHILE_WAITING
]
"""Pairs of a published plan; those of one that waits are in `test_approval`."""
ONLY_WHILE_OPEN = {Event.REFUSED, Event.EXPIRED, Event.IGNORED, Event.AGED}


def test_table_has_an_entry_for_every_pair() -> None:
    assert set(TABLE) == set(product(Phase, Event))


@pytest.mark.parametrize("event", sorted(ONLY_WHILE_WAITING, key=str), ids=str)
@pytest.mark.parametrize("phase", list(PLANS), ids=str)
def test_what_concerns_plans_that_wait_changes_nothing_for_a_published_one(
    phase: Phase, event: Event
) -> None:
    assert TABLE[phase, event] == TABLE[phase, Event.QUIET]


@pytest.mark.parametrize(("phase", "event"), PUBLISHED, ids=str)
def test_event_is_observed_in_every_phase_that_it_concerns(phase: Phase, event: Event) -> None:
    seen = observe(plan(phase), SIGHTS[event])

    if (event in ONLY_WHILE_OPEN and phase in {Phase.APPLIED, Phase.ENDED}) or (
        event is Event.MIGRATION_NEWS and phase is Phase.ENDED
    ):
        assert seen is Event.QUIET
    elif event is Event.AGED and phase is Phase.UNDER_WAY:
        # Nothing has moved since it was published: it gets no more time.
        assert seen is Event.QUIET
        assert observe(plan(phase, done=1), SIGHTS[event]) is Event.AGED
    else:
        assert seen is event


OBSERVED = [(phase, event) for phase, event in PUBLISHED if observe(plan(phase), SIGHTS[event]) is event]


@pytest.mark.parametrize(("phase", "event"), OBSERVED, ids=str)
def test_entry_of_the_table_is_carried_out(phase: Phase, event: Event) -> None:
    before = plan(phase)

    after, action = advance(before, SIGHTS[event])

    entry = TABLE[phase, event]
    assert action is entry.action
    if phase in {Phase.APPLIED, Phase.ENDED} or entry.ends is None:
        assert after.status == before.status
    elif entry.ends == "applied":
        assert (after.status, after.why) == ("applied", "all 2 moves are made")
    else:
        assert after.status == entry.ends
        assert after.why
    assert after.is_dropped == (entry.drops or event is Event.EXPIRED)


@pytest.mark.parametrize("event", [Event.PINNED, Event.MEMBERS_CHANGED, Event.EXPIRED], ids=str)
def test_plan_that_has_moved_something_ends_partly(event: Event) -> None:
    after, _ = advance(plan(Phase.UNDER_WAY, done=1), SIGHTS[event])

    assert after.status == "partly"
    assert (after.why or "").startswith("1 of 2 moves were made; ")


@pytest.mark.parametrize("phase", [Phase.OFFERED, Phase.UNDER_WAY], ids=str)
def test_partition_on_its_way_is_waited_for_before_the_group_is_brought_back(phase: Phase) -> None:
    assert observe(plan(phase), sight(generation=5, progress=progress(between=True))) is Event.QUIET


def test_plan_by_which_something_moved_may_come_back_after_its_time() -> None:
    over = sight(now_ms=SENT_MS + VALID_MS, progress=progress(1))

    moved, action = advance(plan(Phase.UNDER_WAY), over)

    assert (moved.is_restored, action) == (True, Action.RETURN)
    assert not advance(plan(Phase.UNDER_WAY, done=1, done_then=1), over)[0].is_restored


def test_acceptance_begins_a_plan_and_a_move_does_too() -> None:
    accepted, _ = advance(plan(Phase.OFFERED), sight(accepted=True))
    moved, _ = advance(plan(Phase.OFFERED), sight(progress=progress(1)))

    assert phase_of(accepted) is phase_of(moved) is Phase.UNDER_WAY


def test_refusal_does_not_end_what_another_member_has_accepted() -> None:
    assert (
        observe(plan(Phase.UNDER_WAY), sight(refusal="member a refused it: x", accepted=True)) is Event.QUIET
    )
