"""A target that the group has had and lost: when it is published again, and when not."""

from dataclasses import replace

import pytest

from tests.support.planning.facts import NO_GUARDS, RULES
from tests.support.planning.plan_walk import Walk, walk

VALID_S = RULES.valid_for_ms / 1000


def applied() -> Walk:
    """A group that has taken its plan."""
    group = walk()
    group.apply(group.decide())
    group.decide(after_s=60)
    return group


def test_group_that_took_a_plan_gets_it_again_at_once_in_a_new_generation() -> None:
    group = walk()
    first = group.decide()
    base = group.held
    group.apply(first)
    group.decide(after_s=60)

    group.held, group.generation = base, group.generation + 1
    group.lags = [0, 0, 900, 800]
    again = group.decide(after_s=1)

    assert (again.decided, again.epoch, again.assignment) == ("publish", 2, first.assignment)
    assert again.base_generation == 5
    assert [(m.partition, m.from_member, m.to_member) for m in again.moves] == [(1, "a", "b"), (3, "b", "a")]


@pytest.mark.parametrize("after_s", [10, VALID_S], ids=["while it is valid", "later"])
def test_plan_comes_back_when_its_members_are_alone_again(after_s: float) -> None:
    group = applied()
    group.rules = replace(RULES, guards=replace(NO_GUARDS, settle_ms=86_400_000))
    base = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}

    group.held, group.generation = {**base, "c": {}}, 5
    group.decide(after_s=after_s)
    group.held, group.generation = base, 6

    assert group.decide(after_s=600).decided == "publish"


@pytest.mark.parametrize(
    ("pause_s", "reason"),
    [
        (600, None),
        (601, "held back by confirmations: 1 of 2 evaluations in a row found that a plan is needed"),
        (172_800, "held back by confirmations: 1 of 2 evaluations in a row found that a plan is needed"),
    ],
)
def test_plan_of_before_a_long_pause_comes_back_only_through_the_guards(
    pause_s: int, reason: str | None
) -> None:
    group = applied()
    group.rules = replace(RULES, guards=replace(NO_GUARDS, confirmations=2))
    group.held, group.generation = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}, 5

    again = group.decide(after_s=pause_s)

    assert (again.decided, again.reason) == ("unchanged" if reason else "publish", reason)


def test_target_that_would_help_no_longer_is_not_brought_back() -> None:
    group = applied()
    group.rules = replace(RULES, guards=replace(NO_GUARDS, min_improvement=0.1, settle_ms=86_400_000))

    group.held, group.generation = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}, 5
    group.lags = [0, 0, 900, 0]
    rebalanced = group.decide(after_s=10)
    group.lags = [900, 800, 10, 0]
    later = group.decide(after_s=10)

    assert [each.decided for each in (rebalanced, later)] == ["unchanged", "unchanged"]
    assert (later.reason or "").startswith("held back by settle")


def test_guest_for_whom_there_is_nothing_to_move_does_not_end_the_plan() -> None:
    group = walk()
    group.apply(group.decide())
    group.decide(after_s=60)
    group.rules = replace(RULES, guards=replace(NO_GUARDS, settle_ms=86_400_000))

    group.held, group.generation = {"a": {"t": (0,)}, "b": {"t": (1,)}, "c": {"t": (2, 3)}}, 5
    with_guest = group.decide(after_s=10)
    group.held, group.generation = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}, 6
    back = group.decide(after_s=10)

    assert (with_guest.decided, with_guest.moves) == ("unchanged", ())
    assert (back.decided, back.epoch) == ("publish", 2)
