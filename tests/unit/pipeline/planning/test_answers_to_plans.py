"""What members answer a published plan, and what that makes of it."""

from dataclasses import replace

import pytest

from tests.support.planning.facts import NO_GUARDS, RULES
from tests.support.planning.plan_walk import HALFWAY, said, walk

VALID_S = RULES.valid_for_ms / 1000


def test_refusal_is_the_outcome_with_its_reason() -> None:
    group = walk()
    group.decide()
    group.acks = (said("refused", member="b", why="static"), said("refused", epoch=99, why="of another plan"))

    decision = group.decide(after_s=10)

    assert decision.plan is not None
    assert (decision.plan.status, decision.plan.why) == ("refused", "member b refused it: static")


def test_acceptance_adopts_a_plan_before_anything_has_moved() -> None:
    group = walk()
    group.decide()
    group.acks = (said("accepted"),)

    assert (group.decide(after_s=10).plan or pytest.fail("no plan")).is_adopted


def test_refusal_of_one_does_not_end_what_others_have_accepted() -> None:
    group = walk()
    group.decide()
    group.acks = (said("accepted"), said("refused", member="b", why="static"))

    under_way = group.decide(after_s=10)
    over = group.decide(after_s=VALID_S)

    assert under_way.plan is not None
    assert under_way.plan.status == "open"
    assert over.plan is not None
    assert over.plan.why == "the plan expired (plan.valid_for_s); member b refused it: static"


@pytest.mark.parametrize(
    ("held", "status", "why"),
    [
        pytest.param(
            HALFWAY, "partly", "1 of 2 moves were made; member a refused it: two claims", id="halfway"
        ),
        pytest.param(
            {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}},
            "refused",
            "member a refused it: two claims",
            id="from the start",
        ),
    ],
)
def test_plan_that_is_refused_after_a_rebalance_is_over(
    held: dict[str, dict[str, tuple[int, ...]]], status: str, why: str
) -> None:
    group = walk()
    group.apply(group.decide())
    group.decide(after_s=60)
    group.held, group.generation = held, 5
    group.decide(after_s=1)

    group.acks, group.generation = (said("refused", epoch=2, why="two claims"),), 6
    after = group.decide(after_s=1)

    assert after.plan is not None
    assert (after.plan.status, after.plan.why) == (status, why)


def test_plan_that_a_member_does_not_answer_is_withdrawn_before_it_answers_late() -> None:
    """Otherwise members would follow, once b has read it, a plan that lagwise no longer watches."""
    group = walk()
    group.rules = replace(RULES, guards=replace(NO_GUARDS, cooldown_ms=600_000, cooldown_max_ms=600_000))
    group.decide()
    group.acks = (said("accepted"),)
    under_way = group.decide(after_s=59)

    withdrawn = group.decide(after_s=1)
    group.acks = (said("accepted"), said("accepted", member="b"))
    late = group.decide(after_s=30)

    assert under_way.decided == "unchanged"
    assert (withdrawn.decided, withdrawn.epoch, withdrawn.record) == ("publish", 2, None)
    why = "member b did not answer within plan.guards.settle_s, and others had accepted it"
    assert withdrawn.reason == f"withdrawn: {why}"
    assert withdrawn.plan is not None
    assert (withdrawn.plan.status, withdrawn.plan.why) == ("superseded", why)
    assert (late.decided, late.state.plan and late.state.plan.is_restored) == ("unchanged", False)


def test_plan_that_is_half_made_and_published_again_waits_for_a_late_answer() -> None:
    group = walk()
    first = group.decide()
    group.held = HALFWAY
    again = group.decide(after_s=VALID_S / 2)
    group.acks = (said("accepted", epoch=2),)

    late = group.decide(after_s=60)
    group.apply(first)
    applied = group.decide(after_s=60).plan

    assert (again.decided, again.epoch) == ("publish", 2)
    assert (late.decided, late.reason) == (
        "unchanged",
        "plan epoch 2 is under way: 1 of 2 moves are made",
    )
    assert applied is not None
    assert applied.status == "applied"


def test_strangers_acknowledge_nothing() -> None:
    group = walk()
    group.decide()
    group.acks = (
        said("accepted", member="left long ago"),
        said("refused", member="left long ago", why="static"),
    )

    plan = group.decide(after_s=10).plan

    assert plan is not None
    assert (plan.status, plan.is_adopted) == ("open", False)


def test_plan_that_was_refused_on_its_way_goes_through_the_guards_again() -> None:
    group = walk()
    guards = replace(NO_GUARDS, cooldown_ms=3_600_000, cooldown_max_ms=3_600_000)
    group.rules = replace(RULES, guards=guards)
    group.decide()
    group.held = HALFWAY
    epochs = []
    for _ in range(6):
        decision = group.decide(after_s=VALID_S / 2 + 1)
        epochs.append(decision.epoch)
        assert group.published is not None
        group.acks = (said("refused", epoch=group.published.epoch, member="b", why="two claims"),)

    assert epochs == [2, None, None, None, None, None]
