"""What members without a backlog are tried with while others stay behind."""

from dataclasses import replace

import pytest

from pipeline.planning.life.next_state import on_pause
from pipeline.planning.problem.capacity import believed, learned
from pipeline.planning.problem.load import Load
from pipeline.planning.state import FRESH, MemberRate
from tests.support.planning.alone import to_problem
from tests.support.planning.facts import NOW_MS, RULES, draining, group, partitions
from tests.support.planning.plan_walk import Walk

THREE = {"a": {"t": (0, 1)}, "b": {"t": (2,)}, "c": {"t": (3,)}}
HOUR_MS = 3_600_000


def behind(rate: float, lag: float) -> Load:
    """A member that drains so much with a backlog."""
    return Load(rate=rate, lag=lag, shows=rate, shows_at_ms=NOW_MS)


BUSY = {"a": behind(500, 90_000), "b": Load(rate=505, lag=0)}
"""b keeps up with what a cannot, so it is taken to be like it."""


def capacity_of_b(
    rates: dict[str, MemberRate], loads: dict[str, Load], *, now_ms: int, behind_ms: int
) -> float:
    beliefs = believed(rates, loads, now_ms=now_ms, behind_ms=behind_ms)
    assert beliefs is not None
    return beliefs[1].capacity


@pytest.mark.parametrize(
    ("behind_min", "least", "most"),
    [
        *((0, 525, 526), (10, 525, 526), (20, 1500, 1560), (30, 3400, 3600), (600, 16_000, 16_200)),
        pytest.param(30 * 1_440, 16_000, 16_200, id="a month"),
    ],
)
def test_the_longer_somebody_is_behind_the_more_a_member_without_a_backlog_is_worth_a_trial(
    behind_min: int, least: float, most: float
) -> None:
    rates = learned({}, BUSY, now_ms=NOW_MS)

    assert least <= capacity_of_b(rates, BUSY, now_ms=NOW_MS, behind_ms=behind_min * 60_000) <= most


@pytest.mark.parametrize(
    ("shown", "age_h", "grows"),
    [(700, 0, False), (700, 7, True), (400, 0, True)],
    ids=["it may be theirs", "it is of long ago", "it was a slow member's"],
)
def test_trials_grow_until_another_member_has_shown_a_limit(shown: float, age_h: int, *, grows: bool) -> None:
    limits = {
        name: MemberRate(rate=rate, shown=limit, shown_at_ms=NOW_MS - hours * HOUR_MS, seen_at_ms=NOW_MS)
        for name, rate, limit, hours in (("a", 520, 520, 0), ("c", 510, shown, age_h))
    }
    loads = {"a": behind(520, 90_000), "b": Load(rate=505, lag=0), "c": Load(rate=510, lag=0)}
    rates = learned(limits, loads, now_ms=NOW_MS)

    assert (capacity_of_b(rates, loads, now_ms=NOW_MS, behind_ms=HOUR_MS) > 4 * 505) == grows


def test_member_that_is_behind_without_evidence_is_not_tried_with_more() -> None:
    """One of its partitions is never committed, so it shows no speed."""
    loads = {"a": behind(100, 90_000), "b": Load(rate=75, lag=9_000), "c": Load(rate=60, lag=0)}
    beliefs = believed(learned({}, loads, now_ms=NOW_MS), loads, now_ms=NOW_MS, behind_ms=HOUR_MS)

    assert beliefs is not None
    assert beliefs[1].capacity <= 2 * 100 < beliefs[2].capacity


def test_two_limits_end_trials_although_others_drain_a_little_more() -> None:
    loads = {"a": behind(100, 90_000), "b": behind(98, 90_000), "c": Load(rate=101, lag=0)}
    beliefs = believed(learned({}, loads, now_ms=NOW_MS), loads, now_ms=NOW_MS, behind_ms=HOUR_MS)

    assert beliefs is not None
    assert beliefs[2].capacity <= 2 * 101


def test_trial_that_failed_is_not_made_again_at_once() -> None:
    """B showed its limit under a plan, and keeps up again: only the time since then counts."""
    rates = learned({}, {"a": behind(500, 90_000), "b": behind(600, 90_000)}, now_ms=NOW_MS)

    soon, late = (
        capacity_of_b(rates, BUSY, now_ms=NOW_MS + minutes * 60_000, behind_ms=4 * HOUR_MS)
        for minutes in (5, 60)
    )

    assert soon == pytest.approx(600, rel=0.02)
    assert late > 900


def test_member_without_partitions_is_believed_to_be_no_slower_than_busy_ones_are() -> None:
    """Twice 600 and 700 records/s; without this, a plan would rather give the partition to c than to the idle d."""
    loads = {
        "a": behind(500, 90_000),
        "b": Load(rate=700, lag=0),
        "c": Load(rate=600, lag=0),
        "d": Load(rate=0, lag=0),
    }
    beliefs = believed(learned({}, loads, now_ms=NOW_MS), loads, now_ms=NOW_MS)

    assert beliefs is not None
    assert beliefs[3].capacity >= beliefs[2].capacity > 1000


def test_lag_of_hours_is_no_doubt_about_a_member_that_is_behind() -> None:
    rates = learned({}, BUSY, now_ms=NOW_MS)
    beliefs = believed(rates, BUSY, now_ms=NOW_MS, behind_ms=4 * HOUR_MS)

    assert beliefs is not None
    assert beliefs[0].capacity == 500


def test_reason_for_no_move_names_the_members_whose_capacity_is_assumed() -> None:
    """What arrives in t-0 is more than b is believed to drain with what it has."""
    walk = Walk(
        held={"a": {"t": (0,)}, "b": {"t": (1,)}},
        lags=[90_000, 0],
        drain_rates=[500.0, 300.0],
        arrival_rates=[480.0, 300.0],
        rules=replace(RULES, strategy="lag-sticky"),
    )

    reason = walk.decide().reason or ""

    assert "no move: " in reason
    assert reason.endswith("; member b has not shown its limit: lagwise assumes at most 500 records/s")


@pytest.mark.parametrize(
    ("changes", "is_tried"),
    [
        ({}, True),
        ({"behind_seen_ms": NOW_MS - 700_000}, False),
        ({"rebalanced_at_ms": NOW_MS - 30_000}, False),
        ({"behind_since_ms": {}}, False),
    ],
    ids=["behind for an hour", "not seen for long", "rebalanced since", "nobody is behind"],
)
def test_decision_knows_how_long_members_have_been_behind(
    changes: dict[str, object], *, is_tried: bool
) -> None:
    lags = draining(partitions([900, 800, 10, 0]), [25.0, 25.0, 50.5, 50.5])
    state = replace(
        FRESH,
        behind_since_ms={"a": NOW_MS - HOUR_MS},
        behind_seen_ms=NOW_MS - 60_000,
    )
    state = replace(state, **changes)  # type: ignore[arg-type]  # the tests know their types
    calm, _ = to_problem(group(THREE), lags, RULES, FRESH, now_ms=NOW_MS)
    state = on_pause(state, unseen_ms=RULES.unseen_ms, now_ms=NOW_MS)
    problem, _ = to_problem(group(THREE), lags, RULES, state, now_ms=NOW_MS)

    assert problem.group.capacity is not None
    assert calm.group.capacity is not None
    assert (problem.group.capacity[1] > 1.5 * calm.group.capacity[1]) == is_tried
