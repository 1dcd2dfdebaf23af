"""A plan that waits for an operator: what is observed of it, when it is published, and what an approval is told."""

from dataclasses import replace
from typing import Any

import pytest

from assignor.protocol.commands import Approval
from pipeline.planning.facts import AckFacts, is_new
from pipeline.planning.life.approval import WaitingSight, observe
from pipeline.planning.life.lifecycle import TABLE, Action, Event, Phase
from pipeline.planning.state import WaitingPlan
from pipeline.planning.values import Decision, Target
from tests.support.planning.facts import NOW_MS, RULES
from tests.support.planning.plan_walk import HALFWAY, Walk, walk

VALID_MS = RULES.valid_for_ms
APPROVE = replace(RULES, needs_approval=True)
HELD = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}
TURNED = {"a": {"t": (2, 3)}, "b": {"t": (0, 1)}}


def asking(**changes: Any) -> Walk:
    """Lag-aware wants to move partition 1 to b and partition 3 to a, and has to ask."""
    group = walk()
    group.rules = replace(APPROVE, **changes)
    return group


def approval_of(decision: Decision, *, at_ms: int = NOW_MS, by: str = "ann@desk", why: str = "") -> Approval:
    assert decision.target_hash is not None
    assert decision.base_hash is not None
    return Approval(
        target_hash=decision.target_hash, base_hash=decision.base_hash, by=by, reason=why, at_ms=at_ms
    )


def approve(group: Walk, looked_at: Decision, *, by: str = "ann@desk", why: str = "") -> Decision:
    """The decision after an operator has approved what he has looked at."""
    group.order(approval=approval_of(looked_at, at_ms=group.now_ms + 500, by=by, why=why))
    return group.decide(after_s=1)


def told(decision: Decision) -> str:
    return (decision.reason or "").split("; ", maxsplit=1)[0]


# What is observed.

DECIDED = asking().decide()
WAITING = DECIDED.state.waiting
assert WAITING is not None
assert DECIDED.target is not None


def sight(**changes: Any) -> WaitingSight:
    made = WaitingSight(
        target=DECIDED.target,
        generation=4,
        is_overtaken=False,
        is_pinned=False,
        is_approved=False,
        is_triggered=False,
        is_over=False,
        now_ms=NOW_MS,
    )
    return replace(made, **changes)


def target(**changes: Any) -> Target:
    assert DECIDED.target is not None
    return replace(DECIDED.target, **changes)


SIGHTS = {
    Event.OTHER_PLAN: sight(is_overtaken=True, is_pinned=True),
    Event.PINNED: sight(is_pinned=True, target=target(base_hash="x")),
    Event.MEMBERS_CHANGED: sight(target=None, now_ms=NOW_MS + VALID_MS),
    Event.ARRIVED: sight(target=target(moves=(), base_hash="x"), generation=5, now_ms=NOW_MS + VALID_MS),
    Event.EXPIRED: sight(generation=5, now_ms=NOW_MS + VALID_MS),
    Event.REBALANCED: sight(generation=5, target=target(base_hash="x"), is_over=True),
    Event.NEEDLESS: sight(is_over=True, is_approved=True),
    Event.APPROVED: sight(is_approved=True, is_triggered=True),
    Event.TRIGGERED: sight(is_triggered=True),
    Event.QUIET: sight(),
}
NEVER = {
    *(Event.REFUSED, Event.MIGRATION_NEWS, Event.IGNORED, Event.AGED),
    *(Event.OTHER_TARGET, Event.STUCK, Event.RECONCILING),
}
"""What concerns published plans only."""


def waiting() -> WaitingPlan:
    assert WAITING is not None
    return WAITING


@pytest.mark.parametrize("event", list(Event), ids=str)
def test_first_event_that_applies_is_observed(event: Event) -> None:
    if event in NEVER:
        assert TABLE[Phase.AWAITING, event] == TABLE[Phase.AWAITING, Event.QUIET]
    else:
        assert observe(waiting(), SIGHTS[event]) is event


def test_partitions_that_changed_hands_without_a_rebalance_make_it_another_group() -> None:
    assert observe(waiting(), sight(target=target(base_hash="x"))) is Event.MEMBERS_CHANGED


def test_only_an_approved_plan_is_published() -> None:
    publishing = {event for (phase, event), step in TABLE.items() if step.action is Action.PUBLISH}

    assert publishing == {Event.APPROVED}


# What is decided.


def test_plan_waits_with_its_figures_and_is_not_published() -> None:
    group = asking()

    first, second = group.decide(), group.decide(after_s=60)

    assert (first.decided, first.epoch, first.record, len(first.moves)) == (
        "awaiting_approval",
        None,
        None,
        2,
    )
    assert (first.awaiting_since_ms, first.valid_until_ms) == (NOW_MS, NOW_MS + VALID_MS)
    assert told(first) == "the plan waits for approval since 2023-11-14T22:13:20.000Z"
    assert "`lagwise approve g` shows and publishes it" in (first.reason or "")
    assert (second.decided, second.awaiting_since_ms) == ("awaiting_approval", NOW_MS)


def test_waiting_plan_stands_whatever_lag_does() -> None:
    group = asking()
    first = group.decide()
    group.lags = [0, 10, 800, 100]

    second = group.decide(after_s=60)

    assert (second.assignment, second.target_hash) == (first.assignment, first.target_hash)
    assert second.figures != first.figures


def test_approved_plan_is_published_as_it_was_looked_at() -> None:
    group = asking()
    looked_at = group.decide()
    group.lags = [0, 10, 800, 900]

    published = approve(group, looked_at, why="INC-1")

    assert (published.decided, published.epoch) == ("publish", 1)
    assert published.moves is not None
    assert published.assignment == looked_at.assignment
    assert {(move.partition, move.to_member) for move in published.moves} == {(1, "b"), (3, "a")}
    assert published.reason == "approved by ann@desk: INC-1"
    assert published.awaiting_since_ms is None
    assert published.state.plan is not None
    assert (published.state.plan.approved_by, published.state.waiting) == ("ann@desk", None)


def test_approval_is_used_once() -> None:
    group = asking()
    approve(group, group.decide())
    group.acks = (AckFacts(kind="refused", member_id="a", epoch=1, why="busy"),)

    again = group.decide(after_s=VALID_MS / 1000)

    assert (again.decided, again.record) == ("awaiting_approval", None)
    assert told(again).startswith("the plan waits")


def test_second_operator_is_told_that_it_is_published() -> None:
    group = asking()
    looked_at = group.decide()
    approve(group, looked_at)

    second = approve(group, looked_at, by="bob@desk")

    assert (second.decided, second.record) == ("unchanged", None)
    assert told(second) == ("approval refused: plan epoch 1 has published it already (approved by bob@desk)")
    assert told(group.decide(after_s=1)) == "plan epoch 1 is still current, and no member has accepted it yet"


def test_two_approvals_before_one_decision_publish_once() -> None:
    group = asking()
    looked_at = group.decide()
    group.order(approval=approval_of(looked_at, at_ms=group.now_ms + 1))
    group.order(approval=approval_of(looked_at, at_ms=group.now_ms + 2, by="bob@desk"))

    decisions = [group.decide(after_s=1).epoch for _ in range(3)]

    assert decisions == [1, None, None]


def test_approval_of_another_target_is_refused_and_the_plan_waits_on() -> None:
    group = asking()
    looked_at = group.decide()
    group.order(approval=replace(approval_of(looked_at), target_hash="0123456789abcdef"))

    decision = group.decide(after_s=1)

    assert decision.decided == "awaiting_approval"
    assert told(decision) == (
        "approval refused: plan 0123456789abcdef does not wait any more, but plan "
        f"{looked_at.target_hash} does (approved by ann@desk)"
    )
    assert approve(group, looked_at).decided == "publish"


def test_same_target_from_another_base_is_not_what_was_looked_at() -> None:
    group = asking()
    looked_at = group.decide()
    group.generation, group.held = 5, TURNED
    refused = approve(group, looked_at)

    assert refused.decided == "awaiting_approval"
    assert refused.base_hash != looked_at.base_hash
    assert told(refused) == (
        "approval refused: the group rebalanced after the plan was made (approved by ann@desk)"
    )
    group.order(approval=replace(approval_of(looked_at, at_ms=group.now_ms + 1)))
    assert told(group.decide(after_s=1)).startswith("approval refused: plan ")


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"held": HALFWAY}, "the members or the partitions of the group have changed"),
        ({"held": {"a": {"t": (0, 1)}, "c": {"t": (2, 3)}}}, "the members or the partitions"),
        ({"generation": 5}, "the group rebalanced after the plan was made"),
        ({"now_ms": NOW_MS + VALID_MS}, "the plan expired before it was approved (plan.valid_for_s)"),
        ({"rules": replace(APPROVE, strategy="sticky")}, "the members or the partitions"),
        ({"rules": RULES}, "no plan of the group waits for approval"),
        ({"rules": replace(RULES, dry_run=True)}, "no plan of the group waits for approval"),
    ],
    ids=["partitions", "members", "rebalance", "expiry", "strategy", "published unasked", "dry run"],
)
def test_stale_approval_is_refused_with_the_cause(change: dict[str, Any], cause: str) -> None:
    group = asking()
    looked_at = group.decide()
    for name, value in change.items():
        setattr(group, name, value)

    refused = approve(group, looked_at)

    assert (refused.reason or "").startswith(f"approval refused: {cause}")
    assert refused.state.plan is None or refused.state.plan.approved_by is None
    assert not (group.decide(after_s=1).reason or "").startswith("approval refused")


def test_pin_of_what_it_moves_ends_a_plan_that_waits() -> None:
    group = asking()
    looked_at = group.decide()
    group.order(pinned={"t": (1,)}, approval=approval_of(looked_at, at_ms=group.now_ms + 1))

    decision = group.decide(after_s=1)

    assert told(decision).startswith("approval refused: partitions that the plan moves are pinned now")
    assert decision.record is None


def test_plan_that_expires_and_is_made_again_waits_on() -> None:
    group = asking()
    first = group.decide()

    again = group.decide(after_s=VALID_MS / 1000)

    assert (again.target_hash, again.awaiting_since_ms) == (first.target_hash, NOW_MS)
    assert again.valid_until_ms == NOW_MS + 2 * VALID_MS
    assert approve(group, first).decided == "publish"


def test_trigger_makes_a_waiting_plan_again() -> None:
    group = asking()
    first = group.decide()
    group.lags = [10, 0, 900, 800]
    group.order(triggered_at_ms=group.now_ms)

    again = group.decide(after_s=1)

    assert again.decided == "awaiting_approval"
    assert (again.target_hash != first.target_hash, again.awaiting_since_ms) == (True, group.now_ms)


def test_pause_ends_a_plan_that_waits() -> None:
    group = asking()
    looked_at = group.decide()
    group.order(paused=True)
    paused = group.decide(after_s=1)
    group.order(approval=approval_of(looked_at, at_ms=group.now_ms + 1))
    group.lags = [0, 0, 0, 0]

    resumed = group.decide(after_s=1)

    assert (paused.decided, paused.state.waiting) == ("abstain", None)
    assert told(resumed).startswith("approval refused: no plan of the group waits for approval")


def test_approval_waits_while_nothing_can_be_planned() -> None:
    group = asking()
    looked_at = group.decide()
    group.rules = replace(APPROVE, exclude=True)
    abstained = approve(group, looked_at)
    group.rules = APPROVE

    assert (abstained.decided, group.decide(after_s=1).decided) == ("abstain", "publish")


def test_old_approval_without_a_plan_is_nothing_to_tell() -> None:
    group = asking()
    looked_at = group.decide()
    fresh = asking()
    fresh.order(approval=approval_of(looked_at, at_ms=NOW_MS - VALID_MS))

    assert told(fresh.decide()).startswith("the plan waits")


def test_target_that_was_approved_is_brought_back_without_asking() -> None:
    group = asking()
    published = approve(group, group.decide())
    group.apply(published)
    group.decide(after_s=60)
    group.generation, group.held = 5, HELD

    back = group.decide(after_s=60)

    assert (back.decided, back.assignment) == ("publish", published.assignment)
    assert back.state.plan is not None
    assert back.state.plan.approved_by == "ann@desk"


def test_target_that_nobody_was_asked_about_waits_after_a_rebalance() -> None:
    group = walk()
    published = group.decide()
    group.apply(published)
    group.decide(after_s=60)
    group.rules = APPROVE
    group.generation, group.held = 5, HELD

    assert group.decide(after_s=60).decided == "awaiting_approval"


def test_members_that_follow_another_plan_end_one_that_waits() -> None:
    group = asking()
    first = approve(group, group.decide())
    group.lags = [10, 0, 900, 800]
    # Half of its time is over, and a better plan is found.
    other = group.decide(after_s=VALID_MS / 2000 + 1)
    assert first.epoch is not None
    group.acks = tuple(AckFacts(kind="accepted", member_id=name, epoch=first.epoch) for name in "ab")

    decision = approve(group, other)

    assert other.decided == "awaiting_approval"
    assert told(decision).startswith("approval refused: the group is following another plan")


def test_old_approval_publishes_no_later_plan() -> None:
    group = asking()
    looked_at = group.decide()
    old = approval_of(looked_at, at_ms=group.now_ms + 1)
    group.order(paused=True, approval=old)
    group.decide(after_s=1)
    group.order(paused=False, approval=old)

    decisions = [group.decide(after_s=VALID_MS / 1000).decided, group.decide(after_s=1).decided]

    assert decisions == ["awaiting_approval", "awaiting_approval"]


DAY_MS = 86_400_000


def test_approval_is_answered_after_one_of_a_clock_that_was_ahead() -> None:
    group = asking()
    first = group.decide()
    group.order(approval=approval_of(first, at_ms=group.now_ms + DAY_MS))
    group.apply(group.decide(after_s=1))
    group.lags = [10, 900, 10, 800]
    # The commands topic was created again: the next approval does not know of the one before.
    waiting = group.decide(after_s=900)
    assert waiting.decided == "awaiting_approval"

    assert approve(group, waiting).decided == "publish"


def test_earlier_approval_that_is_read_again_publishes_nothing() -> None:
    group = asking()
    looked_at = group.decide()
    earlier = approval_of(looked_at, at_ms=group.now_ms + 1)
    answered = replace(group.state, approval_at_ms=group.now_ms + 500)
    group.state = answered
    group.order(approval=earlier)

    again = group.decide(after_s=1)

    assert (again.decided, again.state.approval_at_ms) == ("awaiting_approval", answered.approval_at_ms)


@pytest.mark.parametrize(
    ("at_ms", "answered_ms", "expected"),
    [
        (5, 0, True),
        (5, 5, False),
        (5, 4, True),
        (4, 5, False),
        (4, 11, True),
        (11, 11, False),
        (12, 11, True),
    ],
)
def test_order_is_new_unless_it_was_answered_or_an_answered_one_is_later(
    at_ms: int, answered_ms: int, expected: bool
) -> None:
    assert is_new(at_ms, answered_ms=answered_ms, now_ms=10) is expected
