"""A partition that is pinned stays, also against a plan that is out already."""

from dataclasses import replace

import pytest

from assignor.protocol.ranges import parse_ranges
from pipeline.planning.facts import AckFacts, Rules
from pipeline.planning.values import Published
from tests.support.planning.facts import NO_GUARDS, RULES
from tests.support.planning.plan_walk import HALFWAY, Walk, walk

VALID_S = RULES.valid_for_ms / 1000


@pytest.mark.parametrize("cooldown_ms", [0, 600_000], ids=["free", "held back"])
def test_pin_withdraws_a_plan_that_would_move_the_partition(cooldown_ms: int) -> None:
    group = walk()
    guards = replace(NO_GUARDS, cooldown_ms=cooldown_ms, cooldown_max_ms=cooldown_ms)
    group.rules = replace(RULES, guards=guards)
    group.decide()
    group.held = HALFWAY
    group.order(pinned={"t": (3,)})

    withdrawn = group.decide(after_s=10)
    quiet = group.decide(after_s=10)

    assert (withdrawn.decided, withdrawn.epoch, withdrawn.record) == ("publish", 2, None)
    assert withdrawn.reason == "withdrawn: partitions that the plan moves are pinned now"
    assert withdrawn.plan is not None
    assert withdrawn.plan.status == "partly"
    assert withdrawn.plan.why == "1 of 2 moves were made; partitions that the plan moves are pinned now"
    assert 3 not in {move.partition for move in quiet.moves}


def unknown(group: Walk, *, valid_for_ms: int = 60_000) -> Walk:
    """The group, with a plan on the topic that no table has."""
    group.published = Published(
        epoch=3, target_hash="", base_hash="", valid_until_ms=group.now_ms + valid_for_ms
    )
    return group


def test_pin_and_pause_withdraw_a_plan_on_the_topic_that_the_tables_do_not_have() -> None:
    pinning, pausing = unknown(walk()), unknown(walk())
    pinning.rules = replace(RULES, guards=replace(NO_GUARDS, settle_ms=600_000))
    pinning.order(pinned={"t": (3,)})
    pausing.order(paused=True)

    pinned, paused = pinning.decide(), pausing.decide()

    assert (pinned.decided, pinned.epoch, pinned.record) == ("publish", 4, None)
    assert pinned.reason == (
        "withdrawn: lagwise's tables do not have the plan, and it may move partitions that are pinned"
    )
    assert (paused.decided, paused.epoch, paused.record) == ("publish", 4, None)
    assert (pinning.decide(after_s=1).record, pausing.decide(after_s=1).decided) == (None, "abstain")


@pytest.mark.parametrize("rules", [RULES, replace(RULES, dry_run=True)], ids=["over", "published by others"])
def test_pin_withdraws_no_unknown_plan_that_is_over_or_that_a_dry_driver_finds(rules: Rules) -> None:
    group = unknown(walk(), valid_for_ms=60_000 if rules.dry_run else 0)
    group.rules = rules
    group.order(pinned={"t": (3,)})

    assert not (group.decide().reason or "").startswith("withdrawn: ")


def test_pause_of_a_dry_driver_withdraws_no_plan_that_others_published() -> None:
    group = unknown(walk())
    group.rules = replace(RULES, dry_run=True)
    group.order(paused=True)

    assert group.decide().decided == "abstain"


def test_group_at_its_target_withdraws_a_plan_on_the_topic_that_the_tables_do_not_have() -> None:
    group = walk()
    group.apply(group.decide())

    assert (unknown(group).decide(after_s=1).reason or "").startswith(
        "withdrawn: the group is where it should"
    )


def test_pin_lets_a_partition_that_is_between_two_members_arrive() -> None:
    group = walk()
    group.decide()
    group.held = {"a": {"t": (0,)}, "b": {"t": (2, 3)}}
    group.order(pinned={"t": (1,)})

    assert group.decide(after_s=10).decided == "unchanged"


def test_pin_does_not_wait_for_partitions_that_nobody_has_had() -> None:
    group = Walk(held={"a": {"t": (0,)}, "b": {"t": (1, 2)}}, lags=[0, 900, 800, 10])
    moves = group.decide().moves
    assert {(move.partition, move.from_member) for move in moves} == {(1, "b"), (3, None)}
    group.order(pinned={"t": (1,)})

    assert (group.decide(after_s=10).reason or "").startswith("withdrawn: ")
    moved = {move.partition for move in group.decide(after_s=10).moves}
    assert (1 in moved, 3 in moved) == (False, True)


@pytest.mark.parametrize("after_s", [1, VALID_S], ids=["out", "over"])
def test_pin_keeps_an_applied_plan_from_coming_back_for_good(after_s: float) -> None:
    group = walk()
    group.apply(group.decide())
    group.decide(after_s=60)
    group.held, group.generation = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}, 5
    group.order(pinned={"t": ()})
    group.decide(after_s=after_s)
    group.decide(after_s=60)
    group.rules = replace(RULES, guards=replace(NO_GUARDS, confirmations=2))
    group.order()

    assert (group.decide(after_s=60).reason or "").startswith("held back by confirmations")


def test_what_a_plan_that_was_pinned_did_not_move_needs_no_rest() -> None:
    group = walk()
    group.rules = replace(RULES, guards=replace(NO_GUARDS, partition_rest_ms=1_200_000))
    group.decide()
    group.acks = (AckFacts(kind="accepted", member_id="a", epoch=1),)
    assert set(group.state.moved_at_ms) == {"t:1", "t:3"}
    group.order(pinned={"t": (1,)})
    group.decide(after_s=10)

    assert group.state.moved_at_ms == {}


@pytest.mark.parametrize("settle_s", [0, 86_400], ids=["free", "held back"])
@pytest.mark.parametrize("of_c", [(2, 3), (1, 2, 3)], ids=["nothing to move", "something to move"])
def test_pin_while_a_guest_is_there_ends_the_plan(of_c: tuple[int, ...], settle_s: int) -> None:
    group = walk()
    group.apply(group.decide())
    group.decide(after_s=60)
    group.rules = replace(RULES, guards=replace(NO_GUARDS, settle_ms=settle_s * 1000))
    rest = tuple(sorted({1} - {*of_c}))
    group.held, group.generation = {"a": {"t": (0,)}, "b": {"t": rest}, "c": {"t": of_c}}, 5
    group.decide(after_s=10)

    group.order(pinned={"t": (1,)})
    group.decide(after_s=10)
    group.held, group.generation = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}, 6
    back = group.decide(after_s=10)

    # Partition 1 went from a to b by the first plan.
    assert 1 in parse_ranges((back.assignment or {})["a"]["t"], at_most=4)
