"""After a plan that hurt: it is taken back once, and probation follows."""

from dataclasses import replace

import pytest

from assignor.protocol.commands import Approval
from pipeline.planning.life.next_state import on_judged
from pipeline.planning.state import FRESH, GroupState, PlanState
from pipeline.planning.values import Decision
from tests.support.planning.facts import RULES
from tests.support.planning.judged_walk import BEFORE, GUARDED, LOSING, applied, effect, plan_of, under_it
from tests.support.planning.plan_walk import Walk, walk

# Taken back.


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


def test_plan_that_hurt_is_known_to_have_hurt_though_the_record_that_takes_it_back_is_too_large() -> None:
    group = applied()
    group.rules = replace(GUARDED, max_record_bytes=100)

    decision = under_it(group, *LOSING)
    group.rules = GUARDED
    later = group.decide(after_s=60)

    assert (decision.decided, effect(decision)) == ("abstain", "hurt")
    assert (decision.reason or "").startswith("control record of group 'g' has ")
    assert decision.state.probation_ends_ms(group.now_ms) is not None
    assert (decision.state.hurts, later.state.hurts) == (1, 1)
    assert (later.reason or "").startswith("takes plan epoch 1 back, which hurt")


def test_plan_is_applied_though_the_record_of_the_next_one_is_too_large() -> None:
    group = walk()
    group.apply(group.decide())
    group.lags, group.rules = [0, 0, 900, 800], replace(RULES, max_record_bytes=100)

    plan = group.decide(after_s=60).plan

    assert plan is not None
    assert plan.status == "applied"


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
