"""The price of a move is what its taker reads less until it recovers, and a dear one makes plans wait."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from pipeline.planning.effect import price
from pipeline.planning.life.next_state import on_pause
from pipeline.planning.problem.case import Case
from pipeline.planning.problem.measured import measured
from pipeline.planning.state import FRESH, GroupState, from_json, to_json
from tests.benchmarks.worlds.policies import Lagwise, NoPlans
from tests.benchmarks.worlds.run import run
from tests.benchmarks.worlds.scenarios import drawn
from tests.support.operate.patient import plan
from tests.support.planning.alone import to_problem
from tests.support.planning.facts import NOW_MS, RULES, committing, group

BEFORE = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}
AFTER = {"a": {"t": (0,)}, "b": {"t": (1, 2, 3)}}
TO_B = np.array([0, 1, 1, 1], np.int32)
BACK = np.array([0, 0, 1, 1], np.int32)
ARRIVING = [100.0] * 4


def case_of(
    held: Mapping[str, Mapping[str, tuple[int, ...]]],
    *,
    behind: int = 0,
    drained: float = 100.0,
    giver_behind: int = 0,
    arriving: list[float] = ARRIVING,
    after_s: int = 0,
) -> Case:
    """What a decision sees: b is so far behind in partition 1 and drains so much of it, a is behind in partition 0."""
    now_ms = NOW_MS + after_s * 1000
    facts = group(held)
    lags = committing(
        arriving,
        drained=[arriving[0], drained, *arriving[2:]],
        behind=[giver_behind, behind, 0, 0],
        observed_at_ms=now_ms,
    )
    problem, _ = to_problem(facts, lags, RULES, FRESH, now_ms=now_ms)
    free = np.zeros(4, np.bool_)
    return Case(
        facts=facts,
        rules=RULES,
        group=problem.group,
        beliefs={},
        seen=measured(problem.group, lags, problem.backlog, free),
        standing=frozenset(),
        resumed=frozenset(),
        cost=None,
        pinned=free,
        old=free,
        why_old=None,
        partitions=lags,
        published=None,
        now_ms=now_ms,
    )


def given(*cases: Case, state: GroupState = FRESH) -> GroupState:
    """The state after a plan that gives partition 1 to b, and these decisions."""
    state = price.with_takers(state, case_of(BEFORE).seen, TO_B, now_ms=NOW_MS)
    for case in cases:
        state = price.with_price(state, case)
        assert from_json(to_json(state)) == state
    return state


def cold(*after_s: int, drained: float = 40.0) -> Iterable[Case]:
    """B reads partition 1 slowly, and falls further behind."""
    return [case_of(AFTER, behind=2_000 + 60 * s, drained=drained, after_s=s) for s in after_s]


def price_s(state: GroupState, *, after_s: int = 300) -> float:
    return price.price_s_of(state, now_ms=NOW_MS + after_s * 1000)


def test_price_is_what_the_taker_read_less_by_the_arrivals_of_what_it_was_given() -> None:
    """300 records/s arrive in what b holds, for two minutes it read 240: 7,200 records, of 100 records/s."""
    state = given(*cold(60, 120), case_of(AFTER, after_s=180))

    assert price_s(state) == pytest.approx(72.0)
    assert not state.takers


def test_taker_that_reads_faster_has_recovered_although_it_is_still_behind() -> None:
    state = given(*cold(60, 120), case_of(AFTER, behind=9_000, drained=200.0, after_s=180))

    assert price_s(state) == pytest.approx(120 * (400 - 240) / 100)


@pytest.mark.parametrize(
    "cases",
    [
        [case_of(AFTER, after_s=s) for s in range(60, 300, 60)],
        [*cold(*range(60, 1_200, 60))],
        [*cold(60, 120), case_of(AFTER, arriving=[100.0, 10.0, 10.0, 100.0], after_s=180)],
    ],
    ids=["never behind", "slow for good", "arrivals fell"],
)
def test_taker_that_does_not_fall_behind_and_recover_shows_no_price(cases: list[Case]) -> None:
    state = given(*cases)

    assert price_s(state) == 0
    assert not state.takers


def test_taker_of_partitions_whose_lag_is_unknown_is_not_watched() -> None:
    """It may have to read a whole log: what it is behind then says nothing of how fast it reads."""
    case = case_of(BEFORE)
    case.seen.lag_at_commit[1] = np.nan
    state = given(*cold(60))

    assert not price.with_takers(FRESH, case.seen, TO_B, now_ms=NOW_MS).takers
    assert not price.with_takers(state, case.seen, TO_B, now_ms=NOW_MS + 60_000).takers


def test_time_in_which_the_progress_of_a_taker_is_unknown_is_no_time_in_which_it_is_slow() -> None:
    unseen = case_of(AFTER, after_s=120)
    unseen.seen.commit_rate[:] = np.nan

    state = given(*cold(60), unseen, *cold(180))

    assert state.takers["b"].slow_ms == 120_000


@pytest.mark.parametrize(("pause_s", "found_s"), [(600, 660 * 60 / 100), (601, 0)])
def test_time_that_nobody_has_seen_is_no_time_in_which_a_taker_is_slow(pause_s: int, found_s: float) -> None:
    """It may have recovered in between, and fallen behind again for another reason."""
    again_s = 60 + pause_s
    state = on_pause(given(*cold(60)), unseen_ms=RULES.unseen_ms, now_ms=NOW_MS + 1000 * again_s)
    for case in (*cold(again_s), case_of(AFTER, after_s=again_s + 60)):
        state = price.with_price(state, case)

    assert price_s(state, after_s=again_s + 60) == pytest.approx(found_s)


def test_rebalance_ends_what_takers_show() -> None:
    state = given(*cold(60))
    state = replace(state, rebalanced_at_ms=NOW_MS + 90_000)

    assert not price.with_price(state, case_of(AFTER, after_s=120)).takers


def test_price_is_forgotten_after_a_day_and_halved_by_smaller_ones() -> None:
    state = given(
        *cold(60, 120),
        case_of(AFTER, after_s=180),
        state=replace(FRESH, priced_at_ms=NOW_MS, move_price_s=400.0),
    )

    assert price_s(state) == 200
    assert price_s(state, after_s=180 + 86_400) == 0


def waits(state: GroupState, *, after_s: int) -> str | None:
    return price.why_waits(state, case_of(BEFORE, giver_behind=9_000, after_s=after_s), TO_B)


def dear(*, cost_s: float, since_s: int = 0, passed_s: int = 0) -> GroupState:
    return replace(
        FRESH,
        move_price_s=cost_s,
        priced_at_ms=NOW_MS,
        behind_since_ms={"a": NOW_MS + since_s * 1000},
        passed_ms=passed_s * 1000,
        passed_at_ms=NOW_MS,
    )


@pytest.mark.parametrize(
    ("state", "least_s"),
    [(dear(cost_s=100), 800), (dear(cost_s=100, passed_s=600), 1200), (dear(cost_s=100, since_s=60), 860)],
)
def test_plan_waits_until_its_givers_are_behind_for_eight_times_what_moves_cost(
    state: GroupState, least_s: int
) -> None:
    assert "the lag has lasted" in str(waits(state, after_s=least_s - 1))
    assert waits(state, after_s=least_s) is None


def test_each_time_that_partitions_go_back_the_next_plan_waits_twice_as_long_up_to_two_hours() -> None:
    state, waited = dear(cost_s=100), []
    for _ in range(5):
        state = price.on_way_back(state, now_ms=NOW_MS)
        waited.append(
            next(after_s for after_s in range(0, 10_000, 100) if waits(state, after_s=after_s) is None)
        )

    assert waited == [1_600, 3_200, 6_400, 7_200, 7_200]
    assert waits(state, after_s=86_400) is None


def test_way_back_in_several_steps_makes_the_next_plan_wait_twice_as_long_once() -> None:
    state, times_ms = dear(cost_s=100), (NOW_MS, NOW_MS + 180_000, NOW_MS + 360_000)
    for at_ms, before_ms in zip(times_ms, (NOW_MS - 600_000, *times_ms), strict=False):
        state = price.on_way_back(replace(state, plan=plan(published_at_ms=before_ms)), now_ms=at_ms)

    assert (state.passed_ms, state.passed_at_ms) == (800_000, times_ms[-1])


@pytest.mark.parametrize("state", [FRESH, dear(cost_s=29.0)], ids=["unknown", "cheap"])
def test_way_back_of_cheap_or_unknown_moves_makes_no_plan_wait(state: GroupState) -> None:
    assert price.on_way_back(state, now_ms=NOW_MS) == state


@pytest.mark.parametrize(("cost_s", "expected_ms"), [(29.0, 0), (30.0, 30_000)])
def test_caches_are_cold_for_as_long_as_an_expensive_move_costs(cost_s: float, expected_ms: int) -> None:
    assert price.cold_ms(dear(cost_s=cost_s), now_ms=NOW_MS) == expected_ms


@pytest.mark.parametrize("state", [FRESH, dear(cost_s=29.0, passed_s=3_600)], ids=["unknown", "cheap"])
def test_plan_of_cheap_or_unknown_moves_waits_for_nothing(state: GroupState) -> None:
    assert waits(state, after_s=1) is None


def test_next_plan_waits_three_minutes_for_a_taker_that_has_fallen_behind() -> None:
    state = given(*cold(60, 120))

    assert "behind since a plan gave it partitions" in str(waits(state, after_s=120))
    assert waits(state, after_s=180) is None


def test_longest_time_behind_that_ended_without_a_plan_is_remembered() -> None:
    state = FRESH
    for after_s, behind in ((0, 9_000), (60, 9_000), (120, 0), (180, 9_000), (240, 0)):
        state = price.with_price(state, case_of(BEFORE, giver_behind=behind, after_s=after_s))

    assert state.passed_ms == 120_000
    assert not state.behind_since_ms


@pytest.mark.parametrize("world", ["slow member", "recovering member"])
def test_group_with_cheap_moves_gets_the_plans_that_it_got_without_a_price(
    monkeypatch: pytest.MonkeyPatch, world: str
) -> None:
    scenario = drawn(world, 0)
    priced = run(scenario, Lagwise())
    monkeypatch.setattr(price, "why_waits", lambda *_: None)
    monkeypatch.setattr(price, "is_expensive", lambda *_, **__: False)

    assert priced.plans
    assert run(scenario, Lagwise()) == priced


def test_cold_caches_leave_a_group_no_worse_off_than_without_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group that came off worst: without a price 1.5 times the lag of no plans, and more before."""
    scenario = drawn("hot key and cold caches", 0)
    priced, unplanned = run(scenario, Lagwise()), run(scenario, NoPlans())
    monkeypatch.setattr(price, "why_waits", lambda *_: None)
    monkeypatch.setattr(price, "is_expensive", lambda *_, **__: False)

    assert 0 < priced.lag_area < 1.05 * unplanned.lag_area
    assert run(scenario, Lagwise()).lag_area > 1.5 * unplanned.lag_area


def test_price_is_bounded_and_a_taker_that_was_given_little_shows_none() -> None:
    small = [100.0, 1.0, 100.0, 100.0]

    def seen(*, drained: float, behind: int, after_s: int) -> Case:
        return case_of(AFTER, drained=drained, behind=behind, arriving=small, after_s=after_s)

    state = price.with_takers(FRESH, case_of(BEFORE, arriving=small, drained=1.0).seen, TO_B, now_ms=NOW_MS)
    for case in (seen(drained=0.0, behind=5_000, after_s=60), seen(drained=1.0, behind=0, after_s=120)):
        state = price.with_price(state, case)

    assert price_s(state) == 0


def test_time_before_the_plan_was_taken_is_not_slowness() -> None:
    state = given()
    state = price.with_price(replace(state, plan=plan()), case_of(AFTER, after_s=500))

    (taker,) = state.takers.values()
    assert taker.seen_ms == NOW_MS + 500_000


@pytest.mark.parametrize("gap_s", [700, 7 * 86_400])
def test_what_passed_while_nobody_looked_is_not_known_to_have_lasted(gap_s: int) -> None:
    state = price.with_price(FRESH, case_of(BEFORE, giver_behind=9_000))
    assert state.behind_since_ms

    state = on_pause(state, unseen_ms=RULES.unseen_ms, now_ms=NOW_MS + 1000 * gap_s)
    state = price.with_price(state, case_of(BEFORE, after_s=gap_s))

    assert state.passed_ms == 0
    assert not state.behind_since_ms


def test_what_passed_by_itself_is_forgotten_after_a_day() -> None:
    state = price.with_price(FRESH, case_of(BEFORE, giver_behind=9_000))
    state = price.with_price(state, case_of(BEFORE, after_s=300))

    assert price.passed_ms_of(state, now_ms=NOW_MS + 300_000) == 300_000
    assert price.passed_ms_of(state, now_ms=NOW_MS + 300_000 + 86_400_000) == 0


def test_partition_that_nobody_reads_waits_for_no_price() -> None:
    unowned = {"a": {"t": (0, 1)}, "b": {"t": (3,)}}

    assert price.why_waits(dear(cost_s=900), case_of(unowned), np.array([0, 1, 1, 1], np.int32)) is None
