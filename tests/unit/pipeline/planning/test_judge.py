"""What an applied plan did: it is judged by what members commit, taken back once if it hurt, and followed by probation."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from assignor.protocol.commands import Approval
from pipeline.planning.effect.waiting import is_pending, is_working
from pipeline.planning.life.next_state import on_judged
from pipeline.planning.state import FRESH, GroupState, PlanState, Witness
from pipeline.planning.values import Decision
from tests.support.planning.facts import NO_GUARDS, RULES
from tests.support.planning.plan_walk import Walk

GUARDED = replace(RULES, guards=replace(NO_GUARDS, cooldown_ms=600_000, cooldown_max_ms=7_200_000))
BEFORE = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}


def applied(
    *, arriving: tuple[float, ...] = (8, 8, 8, 8), draining: tuple[float, ...] = (10, 10, 10, 10)
) -> Walk:
    """Members have just taken a plan: partition 1 is with b, that kept up, and partition 3 with a, that did not."""
    group = Walk(
        held=BEFORE,
        lags=[900, 800, 10, 0],
        arrival_rates=[*arriving],
        drain_rates=[*draining],
        rules=GUARDED,
    )
    first = group.decide()
    assert {(move.partition, move.to_member) for move in first.moves} == {(1, "b"), (3, "a")}
    group.apply(first)
    assert effect(group.decide(after_s=60)) is None
    return group


def under_it(group: Walk, *of_b: int, of_a: int = 900) -> Decision:
    """The decision after commits a minute apart, at which members were so many records behind."""
    for lag in of_b:
        group.lags = [of_a, lag, 0, 0]
        decision = group.decide(after_s=60)
    return decision


LOSING = (300, 600, 900, 1_200)


def plan_of(group: Walk) -> PlanState:
    assert group.state.plan is not None
    return group.state.plan


def effect(decision: Decision) -> str | None:
    return decision.plan.effect if decision.plan is not None else None


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


# Taken back.


@pytest.mark.parametrize(("arriving_then", "waits"), [(0.0, False), (5.0, True)])
def test_member_that_has_nothing_to_read_keeps_no_plan_from_being_made(
    arriving_then: float, *, waits: bool
) -> None:
    """After two plans that are judged together the next one waits for commits, which an emptied member never makes."""
    silent = Witness(member_id="b", kept_up=True, losing=0.0, arriving=5.0, arriving_then=arriving_then)

    assert is_pending(replace(plan_of(applied()), series=2, witnesses=(silent,))) is waits


def test_plan_that_hurt_is_taken_back_at_once() -> None:
    group = applied()

    decision = under_it(group, *LOSING)

    assert (decision.decided, decision.epoch) == ("publish", 2)
    assert {(move.partition, move.to_member) for move in decision.moves} == {(1, "a"), (3, "b")}
    assert (decision.reason or "").startswith("takes plan epoch 1 back, which hurt: member b kept up before")
    assert plan_of(group).takes_back == 1


def test_plan_is_taken_back_once_and_what_takes_it_back_is_not_judged() -> None:
    group = applied()
    group.apply(under_it(group, *LOSING, of_a=10))

    # A kept up, and is given back what it cannot drain.
    decisions = [under_it(group, 10, of_a=lag) for lag in (100, 400, 700, 1_000, 1_300, 1_600)]

    assert [decision.decided for decision in decisions] == ["unchanged"] * 6
    assert plan_of(group).effect is None


def test_half_an_exchange_is_not_taken_back_where_a_pin_keeps_the_other_half() -> None:
    group = applied()
    group.order(pinned={"t": (1,)})

    decision = under_it(group, *LOSING)

    assert decision.decided == "unchanged"
    assert group.state.plan is not None
    assert group.state.plan.effect == "hurt"


def test_topic_that_shrinks_does_not_keep_a_group_from_being_planned() -> None:
    group = applied()
    group.generation, group.held, group.lags = 5, {"a": {"t": (0,)}, "b": {"t": (1,)}}, [900, 0]
    group.drain_rates = group.arrival_rates = None

    assert group.decide(after_s=60).decided != "abstain"


def test_nothing_is_taken_back_of_a_group_that_is_paused() -> None:
    group = applied()
    under_it(group, *LOSING[:3])
    group.order(paused=True)

    assert under_it(group, LOSING[3]).record is None


def test_nothing_is_taken_back_in_a_dry_run() -> None:
    group = applied()
    group.rules = replace(GUARDED, dry_run=True)

    decision = under_it(group, *LOSING)

    assert effect(decision) == "hurt"
    assert (decision.decided, decision.record) == ("unchanged", None)


def asked_to_take_back() -> tuple[Walk, Decision]:
    group = applied()
    group.rules = replace(GUARDED, needs_approval=True)
    return group, under_it(group, *LOSING)


def test_plan_is_taken_back_when_an_operator_approves_it_where_plans_need_that() -> None:
    group, asked = asked_to_take_back()
    assert asked.target_hash is not None
    assert asked.base_hash is not None
    group.order(
        approval=Approval(target_hash=asked.target_hash, base_hash=asked.base_hash, at_ms=group.now_ms + 1)
    )

    approved = under_it(group, 1_500)

    assert (asked.decided, asked.record) == ("awaiting_approval", None)
    assert "takes plan epoch 1 back, which hurt" in (asked.reason or "")
    assert (approved.decided, approved.assignment) == ("publish", asked.assignment)
    assert plan_of(group).takes_back == 1


def test_operator_who_does_not_approve_is_asked_again_while_the_plan_is_not_taken_back() -> None:
    group, asked = asked_to_take_back()
    waits = [under_it(group, 1_500).decided for _ in range(int(RULES.valid_for_ms / 60_000))]

    assert asked.decided == "awaiting_approval"
    assert waits == ["awaiting_approval"] * len(waits)


# Probation.


def hurt_again(state: GroupState, *, after_s: int) -> GroupState:
    """The state once another plan has hurt, so long after the one before."""
    now_ms = state.hurt_at_ms + after_s * 1000
    plan = replace(plan_of(applied()), status="applied", effect="hurt", effect_at_ms=now_ms)
    return on_judged(replace(state, plan=plan), GUARDED.guards, now_ms=now_ms)


def test_each_plan_that_hurts_doubles_the_time_to_the_next_up_to_the_longest() -> None:
    state, lengths_s = replace(FRESH, hurt_at_ms=1), []
    for _ in range(3):
        state = hurt_again(state, after_s=10_000)
        lengths_s.append((state.probation_until_ms - state.hurt_at_ms) / 1000)

    assert (state.hurts, lengths_s) == (3, [1_800, 3_600, 7_200])
    assert plan_of_state(state).is_dropped


def plan_of_state(state: GroupState) -> PlanState:
    assert state.plan is not None
    return state.plan


def test_probation_doubles() -> None:
    long = replace(GUARDED.guards, cooldown_max_ms=10**9)
    plan = replace(plan_of(applied()), effect="hurt", effect_at_ms=5_000_000)
    lengths_s = [
        on_judged(GroupState(hurts=hurts, hurt_at_ms=1, plan=plan), long, now_ms=5_000_000).probation_until_ms
        / 1000
        - 5_000
        for hurts in range(3)
    ]

    assert lengths_s == [1_800, 3_600, 7_200]


def test_plan_that_hurts_a_day_after_another_is_the_first_again() -> None:
    state = hurt_again(replace(FRESH, hurts=5, hurt_at_ms=1), after_s=86_400)

    assert (state.hurts, state.probation_until_ms - state.hurt_at_ms) == (1, 1_800_000)


def on_probation() -> Walk:
    """The plan that hurt has been taken back, the pause is over, and the group needs a plan again."""
    group = applied()
    group.apply(under_it(group, *LOSING))
    under_it(group, 800)
    group.lags = [900, 800, 10, 0]
    return group


def test_group_on_probation_gets_no_plan() -> None:
    decision = on_probation().decide(after_s=540)

    assert len(decision.moves) == 2
    assert decision.reason is not None
    assert decision.reason.startswith(
        "held back by probation: the last plan hurt, so no plan for another 1200 s; `lagwise resume` ends it; "
    )


def test_partitions_of_a_plan_that_hurt_rest_for_thirty_pauses_though_the_probation_lasts_three() -> None:
    group = on_probation()
    published_at_ms = plan_of(group).published_at_ms

    assert group.state.probation_until_ms == published_at_ms + 3 * 600_000
    assert set(group.state.rests_until_ms.values()) == {published_at_ms + 30 * 600_000}


def test_nothing_rests_that_is_taken_back_after_a_resume() -> None:
    group, _ = asked_to_take_back()
    group.rules = GUARDED
    group.order(resumed_at_ms=group.now_ms)

    under_it(group, 1_500)

    assert plan_of(group).takes_back == 1
    assert group.state.rests_until_ms == {}


def test_trigger_publishes_in_spite_of_probation() -> None:
    group = on_probation()
    group.order(triggered_at_ms=group.now_ms + 1)

    assert group.decide(after_s=540).decided == "publish"


@pytest.mark.parametrize("hurts", [True, False])
def test_group_is_not_brought_back_to_a_plan_that_hurt(*, hurts: bool) -> None:
    """Its topic was pinned when it hurt, so that it was not taken back; then Kafka undid it."""
    group = applied()
    group.order(pinned={"t": ()})
    under_it(group, *(LOSING if hurts else (10, 10)))
    assert plan_of(group).epoch == 1
    group.order()
    group.held, group.generation, group.lags = BEFORE, group.generation + 1, [900, 800, 10, 0]

    decision = group.decide(after_s=10)

    assert decision.decided == ("unchanged" if hurts else "publish")
