"""A published plan: finished and not planned anew, and what became of it."""

from dataclasses import replace

import pytest

from pipeline.planning.facts import AckFacts
from tests.support.planning.facts import NO_GUARDS, RULES
from tests.support.planning.plan_walk import HALFWAY, said, walk

VALID_S = RULES.valid_for_ms / 1000


def test_target_stands_while_it_is_applied_whatever_lag_does() -> None:
    group = walk()
    first = group.decide()

    group.held, group.lags = HALFWAY, [0, 0, 900, 800]
    second = group.decide(after_s=60)

    assert (second.decided, second.assignment) == ("unchanged", first.assignment)
    assert second.reason == "plan epoch 1 is under way: 1 of 2 moves are made"
    assert second.plan is not None
    assert (second.plan.status, second.plan.is_adopted, second.plan.done) == ("open", True, 1)


def test_partition_between_two_members_does_not_end_the_plan() -> None:
    group = walk()
    group.decide()

    group.held = {"a": {"t": (0,)}, "b": {"t": (2, 3)}}
    group.generation += 1
    between = group.decide(after_s=10)

    assert between.decided == "unchanged"
    assert "no member has accepted it yet" in (between.reason or "")


def test_plan_that_everybody_has_taken_is_applied_and_the_next_decision_is_free() -> None:
    group = walk()
    group.apply(group.decide())

    there = group.decide(after_s=60)
    group.lags = [0, 0, 900, 800]
    free = group.decide(after_s=60)

    assert there.plan is not None
    assert (there.plan.status, there.plan.why) == ("applied", "all 2 moves are made")
    assert (free.decided, free.epoch) == ("publish", 2)


def test_plan_half_made_is_published_again_before_it_expires() -> None:
    group = walk()
    first = group.decide()
    group.held = HALFWAY

    again = group.decide(after_s=VALID_S / 2)

    assert (again.decided, again.epoch, again.assignment) == ("publish", 2, first.assignment)
    assert [(m.partition, m.to_member) for m in again.moves] == [(3, "a")]


def test_plan_that_stands_still_is_not_published_for_ever() -> None:
    group = walk()
    group.decide()
    group.held = HALFWAY
    group.decide(after_s=VALID_S / 2)

    still = group.decide(after_s=VALID_S / 2)
    over = group.decide(after_s=VALID_S / 2)

    assert still.decided == "unchanged"
    assert over.plan is not None
    assert (over.plan.status, over.plan.why) == (
        "partly",
        "1 of 2 moves were made; the plan expired (plan.valid_for_s)",
    )


def test_plan_that_nobody_takes_expires() -> None:
    group = walk()
    group.decide()
    group.lags = [0, 0, 900, 800]

    decision = group.decide(after_s=VALID_S)

    assert decision.plan is not None
    assert (decision.plan.status, decision.plan.epoch) == ("expired", 1)
    assert decision.epoch == 2


@pytest.mark.parametrize(
    ("acks", "status", "why"),
    [
        pytest.param(
            (), "superseded", "the members or the partitions of the group have changed", id="untouched"
        ),
        pytest.param(
            (said("accepted"),),
            "superseded",
            "the members or the partitions of the group have changed",
            id="accepted",
        ),
    ],
)
def test_other_members_make_the_plan_void(acks: tuple[AckFacts, ...], status: str, why: str) -> None:
    group = walk()
    group.decide()
    group.acks = acks

    group.held, group.generation = {**group.held, "c": {}}, 5
    decision = group.decide(after_s=1)

    assert decision.plan is not None
    assert (decision.plan.status, decision.plan.why) == (status, why)
    assert (decision.decided, decision.epoch) == ("publish", 2)


def test_drain_that_came_true_stands_beside_the_predicted_one() -> None:
    group = walk()
    group.apply(group.decide())
    group.decide(after_s=30)

    group.lags = [40, 30, 0, 0]
    drained = group.decide(after_s=70)
    group.lags = [900, 800, 10, 0]
    later = group.decide(after_s=70)

    assert drained.plan is not None
    assert drained.plan.drained_s == 100
    assert later.plan is not None
    assert later.plan.drained_s == 100


def test_plan_of_another_driver_on_the_topic_ends_ours() -> None:
    group = walk()
    group.decide()
    assert group.published is not None
    group.published = replace(group.published, epoch=7, target_hash="", valid_until_ms=0)
    decision = group.decide(after_s=1)

    assert decision.plan is not None
    assert (decision.plan.status, decision.epoch) == ("superseded", 8)


def test_plan_that_was_decided_and_never_sent_is_made_anew() -> None:
    group = walk()
    group.decide()
    assert group.published is not None
    group.published = replace(group.published, target_hash="", base_hash="", valid_until_ms=0)

    assert group.decide(after_s=1).epoch == 2


def test_group_that_never_moves_is_not_asked_again_for_ever() -> None:
    """Each publication makes the group rebalance, and each rebalance asks for a publication."""
    group = walk()
    group.decide()
    group.acks = (said("accepted"),)
    seen = []
    for _ in range(10):
        group.generation += 1
        seen.append((group.decide(after_s=60).plan or pytest.fail("no plan")).status)

    assert seen == ["open"] * 9 + ["expired"]


def test_rebalance_between_two_moves_gives_the_rest_its_time() -> None:
    group = walk()
    first = group.decide()
    group.held = HALFWAY
    group.decide(after_s=VALID_S / 2 - 1)

    group.generation += 1
    again = group.decide(after_s=1)

    assert (again.decided, again.assignment) == ("publish", first.assignment)
    assert again.state.plan is not None
    assert again.state.plan.valid_until_ms == group.now_ms + RULES.valid_for_ms


def test_moves_are_counted_from_where_a_rebalance_has_put_the_partitions() -> None:
    group = walk()
    group.apply(group.decide())
    group.decide(after_s=60)
    group.held, group.generation = {"a": {"t": (1, 2)}, "b": {"t": (0, 3)}}, 5
    group.decide(after_s=1)

    group.held = {"a": {"t": (0,)}, "b": {"t": (1, 2, 3)}}
    plan = group.decide(after_s=10).plan

    assert plan is not None
    assert (plan.done, plan.moves) == (3, 4)


@pytest.mark.parametrize("begun", [False, True])
def test_plan_that_was_applied_while_nobody_could_look_at_the_group_is_applied_though_its_time_ended(
    *, begun: bool
) -> None:
    group = walk()
    first = group.decide()
    if begun:
        group.held = HALFWAY
    group.decide(after_s=60)
    group.apply(first)
    group.unanswered = (0, 1, 2, 3)
    unseen = group.decide(after_s=VALID_S - 60)
    group.unanswered = ()

    found = group.decide(after_s=60).plan

    assert unseen.plan is not None
    assert (unseen.decided, unseen.plan.status) == ("abstain", "partly" if begun else "expired")
    assert (unseen.plan.why or "").endswith(
        "the plan expired (plan.valid_for_s) while lagwise could not look at the group"
    )
    assert found is not None
    assert (found.status, found.why) == ("applied", "all 2 moves are made")
    assert (found.status_at_ms, found.is_restored) == (group.now_ms, True)


def test_plan_that_was_not_applied_at_the_first_look_after_its_time_stays_expired() -> None:
    group = walk()
    first = group.decide()
    group.unanswered = (0, 1, 2, 3)
    group.decide(after_s=VALID_S)
    group.unanswered, group.rules = (), replace(RULES, guards=replace(NO_GUARDS, settle_ms=86_400_000))
    group.decide(after_s=60)
    group.apply(first)

    later = group.decide(after_s=60).plan

    assert later is not None
    assert (later.status, later.is_restored) == ("expired", False)


def test_partition_between_two_members_is_waited_for_before_the_plan_is_published_again() -> None:
    group = walk()
    group.decide()
    group.held = {"a": {"t": (0,)}, "b": {"t": (1, 2)}}

    between = group.decide(after_s=VALID_S / 2)
    group.held = HALFWAY
    back = group.decide(after_s=10)

    assert (between.decided, back.decided) == ("unchanged", "publish")
