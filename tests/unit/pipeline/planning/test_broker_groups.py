"""KIP-848 groups: the same plan as a classic group's, as advice, and only from what is known."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from assignor.protocol.commands import Orders
from pipeline.planning.broker_reasons import ADVICE
from pipeline.planning.facts import GroupFacts, Reconciliation, Rules
from pipeline.planning.life.answers import follows_within_generation
from pipeline.planning.state import FRESH, GroupState
from pipeline.planning.values import Decision
from tests.support.planning.alone import decide
from tests.support.planning.facts import NO_GUARDS, NOW_MS, RULES, group, kip848_group, partitions
from tests.support.planning.plan_walk import out

BURIED: Mapping[str, Mapping[str, tuple[int, ...]]] = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}
LAGS: list[int | None] = [900, 800, 10, 0]


def decided(facts: GroupFacts, rules: Rules = RULES, state: GroupState = FRESH) -> Decision:
    return decide(facts, partitions(LAGS), rules, None, state, now_ms=NOW_MS)


def with_member(**changes: object) -> GroupFacts:
    """The group with one member of which this is so."""
    facts = kip848_group(BURIED)
    odd = replace(facts.members[1], reconciliation=Reconciliation(**changes))  # type: ignore[arg-type]  # the test knows its types
    return replace(facts, members=(facts.members[0], odd))


def test_target_is_that_of_a_classic_group_and_goes_to_nobody() -> None:
    classic, advice = decided(group(BURIED)), decided(kip848_group(BURIED))

    assert advice.assignment == classic.assignment
    assert advice.moves == classic.moves
    assert advice.figures == classic.figures
    assert (advice.decided, advice.reason) == ("advice", ADVICE)
    assert (advice.sent, advice.epoch, advice.record, advice.valid_until_ms) == (None, None, None, None)


@pytest.mark.parametrize("rules", [RULES, replace(RULES, dry_run=True), replace(RULES, needs_approval=True)])
def test_advice_is_advice_whatever_is_published_of_other_groups(rules: Rules) -> None:
    assert decided(kip848_group(BURIED), rules).decided == "advice"


def test_advice_leaves_no_plan_no_cooldown_and_nothing_to_approve() -> None:
    guards = replace(NO_GUARDS, cooldown_ms=600_000, cooldown_max_ms=600_000)

    state = decided(kip848_group(BURIED), replace(RULES, guards=guards, needs_approval=True)).state

    assert (state.plan, state.waiting, state.cooldown_until_ms) == (None, None, 0)
    assert (state.home, state.moved_at_ms, state.takers) == ({}, {}, {})


def test_guards_hold_advice_back() -> None:
    decision = decided(kip848_group(BURIED), replace(RULES, guards=replace(NO_GUARDS, confirmations=2)))

    assert decision.decided == "unchanged"
    assert (decision.reason or "").startswith("held back by confirmations: 1 of 2")


def test_trigger_passes_the_guards_of_advice_once() -> None:
    orders = Orders(cluster="local", group="g", triggered_at_ms=NOW_MS - 1, at_ms=NOW_MS - 1, by="eva")
    rules = replace(RULES, guards=replace(NO_GUARDS, confirmations=9))
    facts = kip848_group(BURIED, orders=orders)

    first = decided(facts, rules)

    assert (first.decided, decided(facts, rules, first.state).decided) == ("advice", "unchanged")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (kip848_group(BURIED, state="Assigning"), "the group is not stable (state Assigning)"),
        (kip848_group(BURIED, state="Reconciling"), "the group is not stable (state Reconciling)"),
        (kip848_group(BURIED, state=None), "the state of the group is unknown"),
        (kip848_group(BURIED, generation=None), "the state of the group is unknown"),
        (kip848_group({}, state=None), "the state of the group is unknown"),
        (kip848_group({}, state="Empty"), "no members"),
        (with_member(is_stuck=True), "member b is stuck"),
        (replace(with_member(is_stuck=True), state="Reconciling"), "member b is stuck"),
        (with_member(is_classic=True), "member b uses the classic protocol"),
        (with_member(unknown="its partitions are unknown"), "member b: its partitions are unknown"),
        (
            replace(kip848_group(BURIED), members=group(BURIED).members),
            "member a: how far it has come to its target assignment is unknown",
        ),
        (kip848_group({"a": {"t": (0, 1)}, "b": {"t": (2,)}}), "no member owns t-3"),
        (kip848_group({"a": {"t": (0, 1)}, "b": {"t": (1, 2, 3)}}), "two members own t-1"),
        (kip848_group(BURIED, provisional="not read yet"), "provisional: not read yet"),
        (kip848_group(BURIED, group_type="share"), "the group is a share group"),
        (kip848_group(BURIED, group_type="streams"), "the group is a streams group"),
    ],
)
def test_abstains_where_something_is_not_known_or_not_settled(facts: GroupFacts, reason: str) -> None:
    decision = decided(facts)

    assert (decision.decided, decision.target) == ("abstain", None)
    assert (decision.reason or "").startswith(reason)


def test_members_of_a_group_that_the_broker_assigns_follow_nothing_within_a_generation() -> None:
    assert follows_within_generation(group(BURIED, assignor="range"))
    assert not follows_within_generation(kip848_group(BURIED, assignor="range"))


def test_plan_of_a_group_that_was_migrated_is_over_and_is_not_sent_again() -> None:
    published = decided(group(BURIED))
    migrated = kip848_group({"c": {"t": (0, 1)}, "d": {"t": (2, 3)}}, generation=5)

    decision = decide(
        migrated, partitions(LAGS), RULES, out(published), published.state, now_ms=NOW_MS + 1000
    )

    assert (decision.decided, decision.sent) == ("advice", None)
    assert decision.plan is not None
    assert decision.plan.status == "superseded"
