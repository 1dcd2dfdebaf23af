"""Plans that take something only from members that keep up: one by one, watched on, and seldom after one that hurt."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.planning.effect.waiting import why_needless_waits
from pipeline.planning.effect.witnesses import is_needless
from pipeline.planning.life.next_state import on_judged, on_orders
from pipeline.planning.state import FRESH, GroupState, PlanState, Witness
from tests.benchmarks.worlds.commits import every
from tests.benchmarks.worlds.defects import raw_lag
from tests.benchmarks.worlds.policies import Lagwise, NoPlans
from tests.benchmarks.worlds.run import run
from tests.benchmarks.worlds.scenarios.parts import plain
from tests.support.job.measured import seen_of
from tests.support.planning.facts import NO_GUARDS, NOW_MS, committing, group
from tests.support.planning.judged_walk import applied, effect, plan_of, under_it
from tests.support.planning.plan_walk import Walk

GUARDS = replace(NO_GUARDS, cooldown_ms=120_000, cooldown_max_ms=86_400_000)
HELD = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}
FROM_A = np.array([0, 1, 1, 1], np.int32)


def plan(**fields: object) -> PlanState:
    """An applied one of two minutes ago."""
    known = PlanState(
        epoch=7,
        base_generation=4,
        target={},
        revoked={},
        moves=1,
        published_at_ms=NOW_MS - 120_000,
        sent_at_ms=NOW_MS - 120_000,
        valid_until_ms=NOW_MS,
        lag=0,
        drain_s=None,
        status="applied",
        status_at_ms=NOW_MS - 60_000,
        done=1,
        is_needless=True,
    )
    return replace(known, **fields)  # type: ignore[arg-type]  # the test knows their types


@pytest.mark.parametrize(("behind", "needless"), [(500, True), (501, False)])
def test_plan_is_needless_if_its_givers_are_behind_by_no_more_than_clocks_differ(
    behind: int, *, needless: bool
) -> None:
    """Five seconds of the 100 records/s that a receives."""
    seen = seen_of(group(HELD), committing([50.0] * 4, behind=[behind, 0, 9_000, 9_000], every_s=30))

    assert is_needless(seen, None, FROM_A) is needless


def test_plan_for_a_member_that_is_late_with_its_commit_is_not_needless() -> None:
    late = committing([50.0] * 4, every_s=10, ago_s=16)

    assert not is_needless(seen_of(group(HELD), late), None, FROM_A)


def test_plan_that_gives_away_what_nobody_has_is_not_needless() -> None:
    held = {"a": {"t": (1,)}, "b": {"t": (2, 3)}}

    assert not is_needless(seen_of(group(held), committing([50.0] * 4, every_s=30)), None, FROM_A)


@pytest.mark.parametrize(("before_needless", "expected"), [(True, True), (False, False)])
def test_members_that_needless_plans_have_put_behind_count_as_ones_that_keep_up(
    *, before_needless: bool, expected: bool
) -> None:
    seen = seen_of(group(HELD), committing([50.0] * 4, behind=[9_000, 0, 0, 0], every_s=30))
    witness = Witness(member_id="a", kept_up=True, losing=0.0, arriving=50.0, arriving_then=100.0)
    before = plan(is_needless=before_needless, witnesses=(witness,))

    assert is_needless(seen, before, FROM_A) is expected


def waits(state: GroupState, *, after_s: int = 0) -> str | None:
    why = why_needless_waits(state, GUARDS, now_ms=NOW_MS + after_s * 1000)
    return None if why is None else why.rpartition(", ")[2]


def test_needless_plan_waits_for_the_verdict_on_the_one_before() -> None:
    assert waits(replace(FRESH, plan=plan())) == "of which nothing can be seen yet"
    assert waits(replace(FRESH, plan=plan(is_needless=False))) is None
    assert waits(replace(FRESH, plan=plan(takes_back=6))) is None
    assert waits(FRESH) is None


@pytest.mark.parametrize(("series", "pause_s"), [(1, 240), (2, 480), (4, 1_920)])
def test_pause_doubles_from_one_needless_plan_to_the_next(series: int, pause_s: int) -> None:
    state = replace(FRESH, plan=plan(effect="cannot tell", series=series))

    # It was published two minutes ago.
    assert waits(state, after_s=pause_s - 121) is not None
    assert waits(state, after_s=pause_s - 120) is None


def test_after_a_needless_plan_that_hurt_no_other_comes_for_a_hundred_and_twenty_pauses_unless_an_operator_resumes() -> (
    None
):
    hurt = plan(effect="hurt", effect_at_ms=NOW_MS)

    state = on_judged(replace(FRESH, plan=hurt), GUARDS, now_ms=NOW_MS)

    assert state.probation_until_ms == NOW_MS + 1_200_000
    assert waits(state, after_s=14_399) == "unless `lagwise resume` ends that"
    assert waits(replace(state, plan=None), after_s=14_400) is None
    other = on_judged(replace(FRESH, plan=replace(hurt, is_needless=False)), GUARDS, now_ms=NOW_MS)
    assert other.needless_until_ms <= NOW_MS
    assert on_orders(state, None, now_ms=0) == state


def test_judge_alone_keeps_a_group_from_harm_where_lag_between_commits_is_taken_for_a_backlog() -> None:
    """The group keeps up and commits every 30 s: a plan for it can only do harm."""
    calm = plain(np.random.default_rng(1), use=0.65, members=(3, 3), hours=2)
    scenario = replace(calm, commits=every(np.random.default_rng(1), 3, interval_s=30.0))
    policy = Lagwise()

    with raw_lag():
        ours = run(scenario, policy)

    assert run(scenario, Lagwise()).plans == 0
    assert ours.plans >= 3
    assert ours.effects["hurt"] >= 1
    assert ours.lag_area <= 1.5 * run(scenario, NoPlans()).lag_area


def needless() -> Walk:
    """The same after a plan that took partitions from members that kept up."""
    group = applied()
    group.state = replace(group.state, plan=replace(plan_of(group), is_needless=True))
    return group


def test_loss_of_a_tenth_of_what_arrives_shows_at_two_commits_where_nobody_was_behind_before() -> None:
    """B receives 16 records/s now, and had 810 records to read; 10 seconds of arrivals are no backlog."""
    assert [effect(under_it(group, lag)) for group in [needless()] for lag in (1_000, 1_100)] == [
        None,
        "hurt",
    ]
    assert [effect(under_it(group, lag)) for group in [needless()] for lag in (900, 950)] == [None, None]
    assert [effect(under_it(group, lag)) for group in [needless()] for lag in (1_500, 1_400)] == [None, None]
    assert [effect(under_it(group, lag)) for group in [applied()] for lag in (1_000, 1_100)] == [None, None]


def test_member_that_drains_nothing_of_what_it_has_lost_at_four_commits_is_hurt_by_a_needless_plan() -> None:
    of_b = (1_000, 990, 1_000, 1_010)

    assert [effect(under_it(group, lag)) for group in [needless()] for lag in of_b] == [
        None,
        None,
        None,
        "hurt",
    ]
    assert effect(under_it(needless(), 1_010, 1_000, 1_000, 990)) is None
    assert effect(under_it(applied(), *of_b)) is None


def test_needless_plan_that_did_nothing_to_be_seen_is_watched_on_and_hurts_when_that_shows() -> None:
    group = needless()
    group.state = replace(group.state, cooldown_until_ms=group.now_ms + 3_600_000)

    decision = under_it(group, 0, 0, 0, 0, of_a=0)
    assert (effect(decision), decision.plan and decision.plan.effect_why) == (
        "cannot tell",
        "no member lost ground, and none that gave something was behind at its commits before",
    )
    assert [effect(under_it(group, lag, of_a=0)) for lag in (1_000, 2_000)] == ["cannot tell", "hurt"]


def test_needless_plan_of_a_group_that_has_rebalanced_is_watched_no_longer() -> None:
    group = needless()
    group.state = replace(group.state, cooldown_until_ms=group.now_ms + 3_600_000)
    under_it(group, 0, 0, 0, 0, of_a=0)
    group.generation += 1

    assert effect(under_it(group, 1_000, 2_000, 3_000, 4_000, 5_000, of_a=0)) != "hurt"
