"""A group that is where it should be: nothing is published, nothing waits, and a plan that has it otherwise is withdrawn."""

from dataclasses import replace

import pytest

from pipeline.planning.facts import GroupFacts, Rules
from pipeline.planning.reasons import AT_TARGET as AT_TARGET_REASON
from pipeline.planning.state import FRESH
from pipeline.planning.values import Decision, Published
from tests.support.planning.alone import decide
from tests.support.planning.facts import NO_GUARDS, NOW_MS, RULES, group, partitions
from tests.support.planning.plan_walk import Walk, out

BURIED = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}
LAGS: list[int | None] = [900, 800, 10, 0]


def decided(facts: GroupFacts, rules: Rules = RULES, published: Published | None = None) -> Decision:
    return decide(facts, partitions(LAGS), rules, published, FRESH, now_ms=NOW_MS)


def stale(**changes: object) -> Published:
    """The plan of the group as it was, with these changes."""
    return replace(out(decided(group(BURIED))), **changes)  # type: ignore[arg-type]  # the tests know their types


AT_TARGET = {"a": {"t": (0, 3)}, "b": {"t": (1, 2)}}


@pytest.mark.parametrize("needs_approval", [False, True])
def test_nothing_is_published_and_nothing_waits_where_nothing_moves(*, needs_approval: bool) -> None:
    asking = replace(RULES, needs_approval=needs_approval)
    over = stale(target_hash="another", valid_until_ms=NOW_MS)

    for published in (None, over, stale()):
        decision = decided(group(AT_TARGET), rules=asking, published=published)

        assert (decision.decided, decision.record, decision.state.waiting) == ("unchanged", None, None)


@pytest.mark.parametrize("needs_approval", [False, True])
def test_plan_that_moves_what_is_where_it_should_be_is_withdrawn(*, needs_approval: bool) -> None:
    """Members that look at it at their next rebalance would follow it."""
    asking = replace(RULES, needs_approval=needs_approval)
    old = stale(target_hash="another")

    decision = decided(group(AT_TARGET), rules=asking, published=old)

    assert (decision.decided, decision.epoch, decision.record) == ("publish", 2, None)
    assert decision.reason is not None
    assert decision.reason.startswith(
        "withdrawn: the group is where it should be, and the published plan has it otherwise"
    )


def test_nothing_is_withdrawn_in_a_dry_run() -> None:
    dry = replace(RULES, dry_run=True)

    decision = decided(group(AT_TARGET), rules=dry, published=stale(target_hash="another"))

    assert (decision.decided, decision.epoch) == ("unchanged", None)


def test_trigger_with_nothing_to_move_is_answered_and_publishes_no_later_plan() -> None:
    strict = replace(RULES, guards=replace(NO_GUARDS, min_lag=10**9))
    walk = Walk(held=AT_TARGET, lags=LAGS, rules=strict)
    walk.order(triggered_at_ms=walk.now_ms)

    answer = walk.decide(after_s=1)
    walk.held = BURIED
    later = walk.decide(after_s=1)

    assert (answer.decided, answer.reason) == ("unchanged", AT_TARGET_REASON)
    assert answer.state.triggered_at_ms == NOW_MS
    assert (later.decided, len(later.moves)) == ("unchanged", 2)
    assert (later.reason or "").startswith("held back by lag: ")
