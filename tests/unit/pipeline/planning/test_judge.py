"""What an applied plan did: members' commits show whether it helped or hurt."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipeline.planning.effect.waiting import is_pending, is_working
from pipeline.planning.state import Witness
from tests.support.planning.facts import RULES
from tests.support.planning.judged_walk import BEFORE, GUARDED, LOSING, applied, effect, plan_of, under_it
from tests.support.planning.plan_walk import Walk


def test_plan_hurt_if_who_kept_up_is_further_behind_at_three_commits_in_a_row() -> None:
    group = applied()

    assert [effect(under_it(group, lag)) for lag in LOSING] == [None, None, None, "hurt"]


def test_plan_that_hurt_says_of_whom_and_by_how_much() -> None:
    plan = under_it(applied(), *LOSING).plan

    assert plan is not None
    assert plan.effect_why == (
        "member b kept up before and loses ground since: 300, 600, 900, 1,200 records behind at its commits"
    )


@pytest.mark.parametrize(
    "of_b",
    [(300, 600, 590, 1_200, 1_500), (1_200, 900, 600, 300), (300, 310, 320, 330)],
    ids=["caught up in between", "catches up", "by less than clocks differ"],
)
def test_member_that_does_not_lose_ground_at_each_commit_is_not_hurt(of_b: tuple[int, ...]) -> None:
    group = applied()

    assert "hurt" not in [effect(under_it(group, lag)) for lag in of_b]


def test_member_that_was_behind_before_is_not_hurt_when_it_stays_so() -> None:
    group = applied()

    effects = [effect(under_it(group, 10, of_a=lag)) for lag in (900, 1_200, 1_500, 1_800)]

    assert effects == [None] * 4


def test_commits_less_than_a_quarter_of_a_minute_apart_are_one() -> None:
    group = applied()
    for lag in LOSING:
        group.lags = [900, lag, 0, 0]
        decision = group.decide(after_s=14)

    assert effect(decision) is None


def test_plan_helped_if_nobody_loses_ground_and_the_group_is_less_behind() -> None:
    group = applied()
    group.state = replace(group.state, hurts=2)

    decision = under_it(group, 600, 400, 200, 10, of_a=100)

    assert effect(decision) == "helped"
    assert decision.plan is not None
    assert decision.plan.effect_why == (
        "1,700 records behind when it was published, 100 since, and no member loses ground"
    )
    assert group.state.hurts == 1


def test_what_nobody_saw_within_half_an_hour_cannot_be_told() -> None:
    group = applied()
    group.state = replace(group.state, cooldown_until_ms=group.now_ms + 3_600_000)

    effects = [effect(under_it(group, 900)) for _ in range(31)]

    assert effects == [None] * 30 + ["cannot tell"]


def test_rebalance_after_the_plan_explains_what_members_lose() -> None:
    group = applied()
    under_it(group, *LOSING[:3])
    group.generation += 1

    decision = under_it(group, LOSING[3])

    assert effect(decision) == "cannot tell"
    assert decision.plan is not None
    assert decision.plan.effect_why == "the group rebalanced after the plan was applied"


@pytest.mark.parametrize("before", ["helped", "cannot tell"])
def test_plan_that_is_published_again_after_a_rebalance_is_judged_and_taken_back(before: str) -> None:
    group = applied()
    group.state = replace(group.state, cooldown_until_ms=group.now_ms + 36_000_000)
    if before == "helped":
        assert effect(under_it(group, 600, 400, 200, 10, of_a=100)) == before
    group.held, group.lags, group.generation = BEFORE, [900, 800, 0, 0], group.generation + 1
    again = group.decide(after_s=60)
    assert (again.decided, again.epoch, effect(again)) == ("publish", 2, before)
    assert {taker.since_ms for taker in group.state.takers.values()} == {group.now_ms}
    group.apply(again)
    assert effect(group.decide(after_s=60)) is None

    decision = under_it(group, *LOSING)

    assert (decision.reason or "").startswith("takes plan epoch 2 back, which hurt: member b kept up before")
    assert {(move.partition, move.to_member) for move in decision.moves} == {(1, "a"), (3, "b")}


def test_plan_that_relieved_a_member_is_not_needless_when_it_comes_back_before_lag_has_grown_again() -> None:
    """B catches up from its third commit on; of a needless plan two would be enough for *hurt*."""
    group = applied()
    under_it(group, 600, 400, 200, 10, of_a=100)
    group.held, group.lags, group.generation = BEFORE, [40, 40, 0, 0], group.generation + 1
    again = group.decide(after_s=60)
    group.apply(again)
    group.decide(after_s=60)

    assert (again.decided, again.epoch, plan_of(group).is_needless) == ("publish", 2, False)
    assert [effect(under_it(group, lag, of_a=0)) for lag in (250, 450, 200)] == [None] * 3


def test_plan_that_is_published_again_after_a_rebalance_drains_what_is_there_then() -> None:
    group = applied()
    under_it(group, 40, of_a=10)
    assert plan_of(group).drained_s == 120
    group.held, group.lags, group.generation = BEFORE, [500, 400, 0, 0], group.generation + 1

    group.apply(group.decide(after_s=60))
    returned = plan_of(group)
    group.decide(after_s=60)
    under_it(group, 40, of_a=10)

    assert (returned.lag, returned.drained_s) == (900, None)
    assert plan_of(group).drained_s == 120


@pytest.mark.parametrize(
    ("partition", "arriving", "expected"),
    [
        (2, 11.1, "hurt"),
        (2, 11.3, None),
        (1, 11.1, "hurt"),
        (1, 11.3, "cannot tell"),
        (2, 4.7, None),
        (0, 11.3, "hurt"),
    ],
    ids=[
        "a fifth more",
        "more than it",
        "of what it got",
        "more of what both had",
        "less",
        "of the other member",
    ],
)
def test_arrivals_that_changed_by_more_than_a_fifth_explain_what_a_member_loses(
    partition: int, arriving: float, expected: str | None
) -> None:
    group = applied()
    assert group.arrival_rates is not None
    group.arrival_rates[partition] = arriving

    assert effect(under_it(group, *LOSING, of_a=1_800)) == expected


@pytest.mark.parametrize(("more", "expected"), [(0.0, "hurt"), (1.0, "hurt"), (2.0, None)])
def test_ground_that_members_lose_because_more_arrives_is_no_fault_of_the_plan(
    more: float, expected: str | None
) -> None:
    """B loses 1.5 records/s under the plan, and so many more arrive in what it holds."""
    group = applied()
    assert group.arrival_rates is not None
    group.arrival_rates[2] += more

    assert effect(under_it(group, 300, 390, 480, 570)) == expected


def test_more_arrivals_of_one_member_explain_no_loss_of_another() -> None:
    """B loses 1.5 records/s of 16, and a, that is relieved, gets 2 more."""
    group = applied()
    assert group.arrival_rates is not None
    group.arrival_rates[0] += 2

    assert effect(under_it(group, 300, 390, 480, 570)) == "hurt"


def test_plan_that_moves_what_nothing_arrives_in_cannot_be_judged_and_makes_no_pause_longer() -> None:
    group = Walk(held=BEFORE, lags=[900, 800, 10, 0], arrival_rates=[0.0] * 4, rules=GUARDED)
    group.apply(group.decide())

    plan = group.decide(after_s=60).plan

    assert plan is not None
    assert plan.effect == "cannot tell"
    assert str(plan.effect_why).startswith("nothing arrives")
    assert group.state.unclear == 0


def test_plan_of_which_all_arrivals_changed_cannot_be_judged() -> None:
    group = applied()
    group.arrival_rates = [16.0] * 4

    assert effect(under_it(group, 300)) == "cannot tell"


def test_member_that_has_left_is_held_against_no_plan() -> None:
    group = applied()
    group.held = {"a": {"t": (0, 1, 2, 3)}}

    assert effect(under_it(group, 300)) == "cannot tell"


@pytest.mark.parametrize(
    ("pause_s", "why"), [(600, None), (601, "lagwise did not look"), (172_800, "lagwise did not look")]
)
def test_effect_of_a_plan_in_a_long_pause_cannot_be_told(pause_s: int, why: str | None) -> None:
    group = applied()
    under_it(group, 600, 400, 200, of_a=100)
    group.lags = [100, 10, 0, 0]

    plan = group.decide(after_s=pause_s).plan

    assert plan is not None
    assert plan.effect == ("cannot tell" if why else "helped")
    assert group.state.unclear == 0
    assert why is None or str(plan.effect_why).startswith(why)


def test_plan_that_was_not_applied_cannot_be_judged() -> None:
    group = Walk(held=BEFORE, lags=[900, 800, 10, 0], rules=GUARDED)
    group.decide()

    assert effect(group.decide(after_s=RULES.valid_for_ms / 1000)) == "cannot tell"


def test_plan_that_was_applied_while_nobody_could_look_at_the_group_is_judged() -> None:
    group = Walk(
        held=BEFORE, lags=[900, 800, 10, 0], arrival_rates=[8.0] * 4, drain_rates=[10.0] * 4, rules=GUARDED
    )
    first = group.decide()
    group.decide(after_s=60)
    group.apply(first)
    group.unanswered = (0, 1, 2, 3)
    assert group.decide(after_s=RULES.valid_for_ms / 1000 - 60).decided == "abstain"
    group.unanswered = ()
    group.decide(after_s=60)

    assert effect(under_it(group, *LOSING)) == "hurt"


@pytest.mark.parametrize(("per_commit", "expected"), [(180, None), (300, "hurt")])
def test_loss_of_a_taker_that_is_less_than_what_its_giver_lost_before_is_no_hurt(
    per_commit: int, expected: str | None
) -> None:
    """A lost 4 records/s before the plan; b loses 3 or 5 under it."""
    group = applied(arriving=(12, 12, 1, 1), draining=(10, 10, 1, 1))

    decision = under_it(group, *(1_000 + per_commit * n for n in range(4)), of_a=800)

    assert effect(decision) == expected


def test_no_other_plan_is_made_while_a_member_loses_ground_and_three_commits_have_not_passed() -> None:
    group = applied()
    group.rules = RULES
    group.state = replace(group.state, cooldown_until_ms=0)
    under_it(group, 800)
    assert not is_pending(group.state.plan)

    group.lags = [0, 1_400, 400, 0]
    decision = group.decide(after_s=60)

    assert is_pending(group.state.plan)
    assert decision.reason is not None
    assert decision.reason.startswith("held back by effect: a member has lost ground since plan epoch 1; ")


@pytest.mark.parametrize(
    ("draining", "of_b", "waits"),
    [((10, 10, 10, 10), 2_000, True), ((10, 10, 10, 10), 3_000, False), ((8.3, 8.3, 8.3, 8.3), 200, False)],
    ids=["in 8 minutes", "in 12 minutes", "not as far as commits show"],
)
def test_no_other_plan_is_made_while_members_catch_up_within_ten_minutes_under_the_last_one(
    draining: tuple[float, ...], of_b: int, *, waits: bool
) -> None:
    """16 records/s arrive at b. lagwise would judge, and take back, any plan meanwhile with the one that works."""
    group = applied(draining=draining)
    group.rules = RULES
    group.state = replace(group.state, cooldown_until_ms=0)

    group.lags = [0, of_b - 100, 100, 0]
    decision = group.decide(after_s=60)

    assert str(decision.reason).startswith("held back by effect: members that are behind catch up") is waits
    assert (decision.decided == "publish") is not waits


@pytest.mark.parametrize(("owner", "works"), [((0, 0), True), ((0, -1), False)])
def test_partition_without_an_owner_does_not_wait_for_members_that_catch_up(
    owner: tuple[int, ...], *, works: bool
) -> None:
    seen: Any = SimpleNamespace(
        group=SimpleNamespace(owner=np.array(owner), n_members=1),
        arriving=np.array([1.0, 1.0]),
        lag_of=lambda _held: 1_000.0,
        drained_by=lambda _held: 10.0,
    )

    assert is_working(plan_of(applied()), seen) is works


def test_plan_that_was_judged_keeps_no_other_from_being_made_while_members_catch_up() -> None:
    group = applied()
    group.rules = RULES
    judged = replace(plan_of(group), effect="helped", effect_why="", effect_at_ms=group.now_ms - 1)
    group.state = replace(group.state, cooldown_until_ms=0, plan=judged)

    group.lags = [0, 1_900, 100, 0]

    assert group.decide(after_s=60).decided == "publish"


@pytest.mark.parametrize(("arriving_then", "waits"), [(0.0, False), (5.0, True)])
def test_member_that_has_nothing_to_read_keeps_no_plan_from_being_made(
    arriving_then: float, *, waits: bool
) -> None:
    """After two plans that are judged together the next one waits for commits, which an emptied member never makes."""
    silent = Witness(member_id="b", kept_up=True, losing=0.0, arriving=5.0, arriving_then=arriving_then)

    assert is_pending(replace(plan_of(applied()), series=2, witnesses=(silent,))) is waits
