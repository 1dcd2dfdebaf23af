"""Partitions go back to where they were before plans, once nothing has been behind for five minutes."""

from dataclasses import replace

import pytest

from pipeline.planning.facts import AckFacts
from pipeline.planning.values import Decision
from tests.support.facts import NO_GUARDS, RULES
from tests.support.plan_walk import Walk

BEFORE = {"a": {"t": (0, 1, 2)}, "b": {"t": (3, 4, 5)}, "c": {"t": (6, 7, 8)}}
BURST = [9_000, 9_000, 9_000, 0, 0, 0, 0, 0, 0]
CALM = [0] * 9
_GUARDS = replace(NO_GUARDS, moves_share=0.5, min_improvement=0.1)


def after_the_burst(**rules: object) -> Walk:
    """What a held was behind, and the others read it with a; nothing is behind any more."""
    made = Walk(
        held=BEFORE,
        lags=[*BURST],
        arrival_rates=[30.0] * 3 + [1.0] * 6,
        drain_rates=[100.0 / 3] * 3 + [100.0 / 3] * 6,
        rules=replace(RULES, strategy="lag-sticky", guards=_GUARDS, **rules),  # type: ignore[arg-type]  # as given
    )
    plan = made.decide()
    assert plan.decided == "publish", plan.reason
    assert plan.moves
    made.apply(plan)
    made.lags, made.arrival_rates = [*CALM], [1.0] * 9
    made.decide(after_s=60)
    return made


def moved(decision: Decision) -> dict[int, str | None]:
    return {move.partition: move.to_member for move in decision.moves}


def later(group: Walk, *, minutes: int = 5) -> Decision:
    for _ in range(minutes):
        decision = group.decide(after_s=60)
    return decision


def returns(group: Walk, *, minutes: int = 10) -> bool:
    """Whether anything is given back, or proposed to be, in that time."""
    return any(
        str(group.decide(after_s=60).reason).startswith("gives ") or group.state.waiting
        for _ in range(minutes)
    )


def test_partitions_return_after_five_calm_minutes_and_not_before() -> None:
    group = after_the_burst()
    assert later(group, minutes=4).decided == "unchanged"

    back = later(group, minutes=1)

    assert back.decided == "publish"
    assert set(moved(back).values()) == {"a"}
    assert str(back.reason).startswith(
        f"gives {len(back.moves)} partition(s) back to the members that had them"
    )
    group.apply(back)
    assert group.held == BEFORE
    assert later(group, minutes=20).decided == "unchanged"
    assert group.state.home == {}


def test_lag_begins_the_five_minutes_anew() -> None:
    group = after_the_burst()
    later(group, minutes=3)
    group.lags = [500] * 9
    group.decide(after_s=60)
    group.lags = [*CALM]

    assert not returns(group, minutes=4)
    assert returns(group, minutes=2)


def test_time_in_which_nobody_looked_is_not_known_to_be_calm() -> None:
    group = after_the_burst()
    group.now_ms += 3_600_000

    assert not returns(group, minutes=5)
    assert returns(group, minutes=1)


def test_partitions_stay_where_what_arrives_would_be_too_much_for_who_had_them() -> None:
    group = after_the_burst()
    group.arrival_rates = [40.0] * 3 + [1.0] * 6

    assert not returns(group)


def test_member_that_has_come_since_keeps_everything_where_it_is() -> None:
    group = after_the_burst()
    group.held = {**group.held, "d": {}}
    group.generation += 1

    assert not returns(group)


def test_what_the_groups_own_assignor_has_given_to_others_since_stays_there() -> None:
    group = after_the_burst()
    # Given back, 0 and 2 would be spread more evenly.
    group.held = {"a": {"t": (3,)}, "b": {"t": (1, 2, 4, 5)}, "c": {"t": (0, 6, 7, 8)}}
    group.generation += 1

    assert not returns(group)


def test_pinned_partition_does_not_return() -> None:
    group = after_the_burst()
    group.order(pinned={"t": ()})

    assert not returns(group)


def test_nothing_is_given_back_where_plans_are_not_published() -> None:
    group = after_the_burst()
    group.rules = replace(group.rules, dry_run=True)

    assert not returns(group)


@pytest.mark.parametrize("strategy", ["sticky", "range"])
def test_nothing_is_given_back_by_strategies_that_do_not_go_by_lag(strategy: str) -> None:
    group = after_the_burst()
    group.rules = replace(group.rules, strategy=strategy)

    assert not returns(group)


def test_return_waits_for_an_approval_where_plans_do() -> None:
    group = after_the_burst()
    group.rules = replace(group.rules, needs_approval=True)

    decision = later(group)

    assert decision.decided != "publish"
    assert group.state.waiting is not None
    assert moved(decision)


def test_group_that_was_lopsided_before_its_plans_is_not_made_so_again() -> None:
    group = after_the_burst()
    # As if a had held everything.
    whole = {"a": {"t": "0-8"}}
    group.state = replace(group.state, home=whole)

    assert not returns(group)


def test_members_that_refuse_it_are_not_asked_again_and_again() -> None:
    group = after_the_burst()
    back = later(group)
    assert back.decided == "publish"
    epoch = back.epoch or 0
    group.acks = (AckFacts(kind="refused", member_id="b", epoch=epoch, why="migration"),)

    assert not returns(group, minutes=30)


def test_partitions_that_rest_after_a_plan_that_hurt_stay() -> None:
    group = after_the_burst()
    until_ms = group.now_ms + 3_600_000
    group.state = replace(group.state, rests_until_ms={f"t:{number}": until_ms for number in range(9)})

    assert not returns(group)


def test_probation_holds_it_back() -> None:
    group = after_the_burst()
    group.state = replace(group.state, probation_until_ms=group.now_ms + 3_600_000, hurts=1)

    assert not returns(group)
