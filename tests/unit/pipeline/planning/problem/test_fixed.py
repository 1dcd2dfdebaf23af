"""Partitions that are pinned or cool down are part of the problem that a strategy solves."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.planning.problem.capacity import Belief
from pipeline.planning.problem.fixed import cooling_down, pinned
from pipeline.planning.state import FRESH
from tests.support.assignors.groups import group, member
from tests.support.planning.facts import NO_GUARDS, RULES
from tests.support.planning.plan_walk import Walk


def buried(strategy: str = "lag-sticky", **guards: object) -> Walk:
    """Member a drains 10 records/s and has partitions of 60, 30 and 30 s; b, taken to drain as much, has nothing to read."""
    return Walk(
        held={"a": {"t": (0, 1, 2)}, "b": {"t": (3,)}},
        lags=[600, 300, 300, 0],
        drain_rates=[4.0, 3.0, 3.0, 10.0],
        rules=replace(RULES, strategy=strategy, guards=replace(NO_GUARDS, **guards)),  # type: ignore[arg-type]  # the tests know their types
    )


def test_pin_holds_nothing_that_nobody_owns() -> None:
    built = group({"t": 2}, member("A", "t", owned={"t": (0,)}))

    assert pinned(built, ("t",), {}).tolist() == [True, False]
    np.testing.assert_array_equal(pinned(built, (), {"t": ()}), pinned(built, ("t",), {}))


@pytest.mark.parametrize(("ordered", "moved"), [((), {0}), ((0,), {1, 2}), ((1,), {0})])
def test_plan_around_a_pin_gains_all_that_the_pin_allows(ordered: tuple[int, ...], moved: set[int]) -> None:
    walk = buried(min_improvement=0.4)
    if ordered:
        walk.order(pinned={"t": ordered})

    decision = walk.decide()

    assert decision.decided == "publish"
    assert {move.partition for move in decision.moves} == moved
    assert (decision.figures.drain_s_before, decision.figures.drain_s_after) == (120.0, 60.0)
    assert decision.figures.drain_s_bound == pytest.approx(60.0)


def test_bound_of_a_decision_is_that_of_what_may_move() -> None:
    walk = buried()
    walk.order(pinned={"t": (0, 1)})

    decision = walk.decide()

    assert (decision.figures.drain_s_after, decision.figures.drain_s_bound) == (90.0, 90.0)


@pytest.mark.parametrize(
    ("strategy", "ordered", "remark"),
    [
        ("lag-sticky", (0, 1, 2), "3 partition(s) stay with their owner: 3 pinned"),
        ("lag-sticky", (3,), None),
        ("range", (0, 1, 2), "3 partition(s) stay with their owner: 3 pinned"),
    ],
    ids=["they decide when the group is drained", "they do not", "the strategy reads no lag"],
)
def test_reason_names_what_is_frozen_when_it_matters(
    strategy: str, ordered: tuple[int, ...], remark: str | None
) -> None:
    walk = buried(strategy, settle_ms=10**9)
    walk.order(pinned={"t": ordered})

    reason = walk.decide().reason or ""

    assert remark in reason if remark else "stay with their owner" not in reason


def test_reason_tells_pinned_partitions_from_those_that_moved_recently() -> None:
    walk = buried(partition_rest_ms=1_200_000)
    walk.apply(walk.decide())
    walk.lags = [0, 0, 0, 900]
    walk.order(pinned={"t": (3,)})

    reason = walk.decide(after_s=60).reason or ""

    assert reason.endswith("2 partition(s) stay with their owner: 1 pinned, 1 moved recently")


@pytest.mark.parametrize(
    ("arrival_rate", "per_day", "moved"),
    [(5.0, 9, False), (9.0, 9, True), (9.0, 1, False)],
    ids=["its owner catches up", "its owner loses ground", "moved too often in a day"],
)
def test_partition_rests_unless_its_owner_is_seen_to_lose_ground(
    arrival_rate: float, per_day: int, *, moved: bool
) -> None:
    """Two partitions went to b, which was taken to be as fast as a, and is not."""
    walk = buried(partition_rest_ms=1_200_000, partition_moves_per_day=per_day)
    walk.held = {**walk.held, "c": {}}
    first = walk.decide()
    walk.apply(first)
    given = {move.partition for move in first.moves if move.to_member == "b"}
    walk.lags, walk.drain_rates = [0, 0, 0, 0], [4.0, 4.0, 4.0, 4.0]
    walk.arrival_rates = [0.0] * 4
    for partition in given:
        walk.lags[partition], walk.arrival_rates[partition] = 9_000, arrival_rate

    again = [walk.decide(after_s=60) for _ in range(3)]

    assert any(move.partition in given for decision in again for move in decision.moves) == moved


@pytest.mark.parametrize(
    ("rates", "hurt", "worn", "fixed"),
    [
        ([6.0, 6.0, 0.0], {0, 1}, set(), set()),
        ([6.0, 5.0, 1.0], {0, 1}, set(), {0, 1}),
        ([4.0, 4.0, 0.0], {0, 1}, set(), {0, 1}),
        ([6.0, 6.0, 0.0], {0, 1}, {1}, {1}),
        ([6.0, 5.0, 1.0], {0, 1}, {2}, {2}),
    ],
    ids=["no other", "another one", "keeps up", "moved too often", "the other moved too often"],
)
def test_partitions_of_a_plan_that_hurt_rest_unless_their_owner_loses_ground_and_has_no_other(
    rates: list[float], hurt: set[int], worn: set[int], fixed: set[int]
) -> None:
    asked = group(
        {"t": 4},
        member("a", "t", owned={"t": [0, 1, 2]}, capacity=10.0),
        member("b", "t", owned={"t": [3]}, capacity=10.0),
        lags={"t": [900, 900, 0, 0]},
        rates={"t": [*rates, 0.0]},
    )
    state = replace(
        FRESH,
        moved_at_ms={f"t:{number}": (1,) for number in worn},
        rests_until_ms={f"t:{number}": 1_000 for number in hurt},
    )
    guards = replace(NO_GUARDS, partition_moves_per_day=1)

    found = cooling_down(asked, {"a": Belief(capacity=10.0, is_shown=True)}, guards, state, now_ms=500)

    assert set(np.flatnonzero(found).tolist()) == fixed
