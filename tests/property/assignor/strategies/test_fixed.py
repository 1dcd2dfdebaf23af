"""What is fixed stays, closed members get nothing, and every strategy keeps its promises about the rest."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from assignor.evaluation import validity
from assignor.evaluation.drain.bound import lower_bound_s
from assignor.evaluation.drain.time import drain_s
from assignor.model.group import Group
from assignor.strategies import lag_aware
from assignor.strategies.handover import next_step
from assignor.strategies.registry import STRATEGIES
from assignor.strategies.sticky import strategy as sticky
from assignor.strategies.sticky.equal import assign_equal
from assignor.strategies.sticky.unequal.solver import assign_unequal
from tests.support.assignors import literal_rules
from tests.support.assignors.drain_groups import FREE, OPTIONS, lag_sticky, moved, owned, time_s
from tests.support.assignors.drain_judge import soonest_s
from tests.support.assignors.even_groups import unequal_groups
from tests.support.assignors.even_judge import best, n_count_vectors
from tests.support.assignors.fixed_groups import (
    constrained,
    constrained_descriptions,
    constrained_lagging_groups,
    drawn_fixed,
)
from tests.support.assignors.groups import Description, descriptions, owned_by
from tests.support.assignors.strategies import each_strategy

FEW = settings(max_examples=60)


@given(group=constrained_descriptions(equal=True))
def test_fixed_partitions_stay_and_closed_members_get_nothing(group: Group) -> None:
    for strategy in each_strategy():
        validity.check(group, strategy.assign(group, {}))


@given(group=constrained_descriptions())
def test_fixed_partitions_stay_whatever_is_subscribed(group: Group) -> None:
    for strategy in each_strategy():
        if strategy.name != "constrained-cooperative-sticky":
            validity.check(group, strategy.assign(group, {}))


@given(description=descriptions(equal=True, max_lag=1000))
def test_nothing_changes_when_nothing_is_fixed(description: Description) -> None:
    group = description.build()
    none_fixed = replace(
        group, fixed=np.zeros(group.n_partitions, np.bool_), closed=np.zeros(group.n_members, np.bool_)
    )

    for strategy in each_strategy():
        assignment = strategy.assign(none_fixed, {})

        validity.check(none_fixed, assignment)
        assert assignment.member.tolist() == strategy.assign(group, {}).member.tolist()


@given(group=constrained_descriptions(equal=True))
def test_hand_over_ends_after_its_second_step(group: Group) -> None:
    handed = replace(group, fixed=None, closed=None)

    for strategy in each_strategy():
        target = strategy.assign(group, {})
        first = next_step(handed, target, by_number=strategy.joins)
        second = next_step(owned_by(handed, first), target, by_number=strategy.joins)

        validity.check(group, target)
        assert second.member.tolist() == target.member.tolist()


@settings(max_examples=300)
@given(group=constrained_descriptions())
def test_sticky_counts_and_moves_are_the_best_that_what_is_fixed_allows(group: Group) -> None:
    assume(n_count_vectors(group) <= 1000)

    verdict = validity.check(group, sticky.assign(group), even="optimal")

    counts, kept = best(group)
    assert sorted(verdict.counts.tolist(), reverse=True) == counts
    assert verdict.kept == kept


@settings(max_examples=200)
@given(group=constrained(unequal_groups()))
def test_sticky_is_most_even_with_unequal_subscriptions(group: Group) -> None:
    validity.check(group, sticky.assign(group), even="optimal")


@settings(max_examples=200)
@given(group=constrained_descriptions(equal=True))
def test_both_forms_of_sticky_agree_on_counts_and_moves(group: Group) -> None:
    linear, general = (
        validity.check(group, form(group), even="optimal") for form in (assign_equal, assign_unequal)
    )

    assert sorted(linear.counts.tolist()) == sorted(general.counts.tolist())
    assert linear.kept == general.kept


@pytest.mark.parametrize("scope", ["topic", "group"])
@pytest.mark.parametrize("ties", ["lag", "kip"])
@given(group=constrained_descriptions())
def test_lag_aware_equals_the_rule_partition_by_partition(
    ties: lag_aware.Ties, scope: lag_aware.Scope, group: Group
) -> None:
    assignment = lag_aware.assign(group, scope=scope, ties=ties)

    validity.check(group, assignment, even="topic")
    assert assignment.member.tolist() == literal_rules.lag_aware(group, scope, ties)


@pytest.mark.parametrize("name", ["range", "roundrobin"])
@given(group=constrained_descriptions())
def test_formula_holds_for_all_that_is_neither_fixed_nor_refused(name: str, group: Group) -> None:
    plain = STRATEGIES[name].assign(replace(group, fixed=None, closed=None), {}).member

    assignment = STRATEGIES[name].assign(group, {})

    validity.check(group, assignment)
    for pid in range(group.n_partitions):
        possible = literal_rules.possible_members(group, pid)
        if plain[pid] in possible:
            assert assignment.member[pid] == plain[pid]
        elif literal_rules.stays(group, pid) or group.owner[pid] >= 0:
            assert assignment.member[pid] == group.owner[pid]


@FEW
@given(group=constrained_lagging_groups(), options=OPTIONS, max_moves=st.integers(0, 6))
def test_lag_sticky_keeps_to_the_budget_is_never_later_and_above_the_bound(
    group: Group, options: dict[str, Any], max_moves: int
) -> None:
    target = lag_sticky(group, max_moves=max_moves, **options)

    validity.check(group, target)
    before_s, bound_s = drain_s(group, group.owner), lower_bound_s(group)
    assert before_s is not None
    assert bound_s is not None
    assert moved(group, target) <= max_moves
    assert bound_s * (1 - 1e-9) <= time_s(group, target) <= before_s * (1 + 1e-9)


def beside_a_hopeless_member() -> Group:
    """m2 never drains what is fixed on it; what it gives away leaves m1 with what m0 could take."""
    built = owned((), (0, 20), (0, 250, 250), rates=((), (0.0, 0.0), (1.0, 1.0, 9.0)))
    return replace(
        built,
        capacity=np.array([10.0, 25.0, 10.0]),
        fixed=np.array([False, True, True, False, True]),
    )


@FEW
@example(group=beside_a_hopeless_member(), options=FREE)
@given(group=constrained_lagging_groups(), options=OPTIONS)
def test_lag_sticky_does_not_move_its_own_result(group: Group, options: dict[str, Any]) -> None:
    target = lag_sticky(group, max_moves=group.n_partitions, **options)
    applied = replace(owned_by(group, target), fixed=group.is_fixed())

    again = lag_sticky(applied, max_moves=group.n_partitions, **options)

    validity.check(applied, again)
    assert again.member.tolist() == target.member.tolist()


@FEW
@given(group=constrained_lagging_groups())
def test_lag_sticky_is_no_later_than_other_strategies(group: Group) -> None:
    target = lag_sticky(group, max_moves=group.n_partitions, **FREE)

    validity.check(group, target)
    others = (lag_aware.assign(group), lag_aware.assign(group, scope="group"), sticky.assign(group))
    assert time_s(group, target) <= min(time_s(group, other) for other in others) * (1 + 1e-9)


@FEW
@given(group=constrained_lagging_groups())
def test_lag_sticky_with_even_counts_has_those_of_sticky(group: Group) -> None:
    target = lag_sticky(group, counts="even", **FREE)

    counts = validity.check(group, target).counts
    assert sorted(counts) == sorted(validity.check(group, sticky.assign(group)).counts)


@FEW
@given(group=constrained_lagging_groups(), cap=st.integers(1, 5))
def test_nobody_above_the_cap_holds_what_is_not_fixed_unless_he_must(group: Group, cap: int) -> None:
    target = lag_sticky(group, count_cap=cap, **FREE)

    counts = validity.check(group, target).counts
    even = sticky.assign(group).member
    least = np.bincount(even[even >= 0], minlength=group.n_members)
    has_free = np.bincount(even[(even >= 0) & ~group.is_fixed()], minlength=group.n_members) > 0
    base = np.bincount(group.owner[group.is_fixed()], minlength=group.n_members)
    allowed = np.maximum(base, max(cap, int(least[has_free].max(initial=0))))
    assert (counts <= allowed).all()


@FEW
@given(group=constrained_lagging_groups(most_partitions=8))
def test_lag_sticky_is_not_far_from_the_best_there_is(group: Group) -> None:
    target = lag_sticky(group, max_moves=group.n_partitions, **FREE)

    validity.check(group, target)
    best_s = soonest_s(group)
    assert time_s(group, target) >= best_s * (1 - 1e-9)
    assert math.isinf(best_s) or time_s(group, target) <= best_s * 2


def test_planning_around_what_is_fixed_is_no_later_than_putting_it_back_afterwards() -> None:
    around, afterwards = [], []
    for seed in range(60):
        group = replace(drawn_fixed(seed, fixed_share=0.3), closed=None)
        loose = replace(group, fixed=None)
        target = lag_sticky(group, max_moves=group.n_partitions, **FREE)
        put_back = lag_sticky(loose, max_moves=group.n_partitions, **FREE).member
        put_back = np.where(group.is_fixed(), group.owner, put_back)
        validity.check(group, target)
        around.append(time_s(group, target))
        afterwards.append(drain_s(loose, put_back) or 0.0)

    around_s, afterwards_s = np.array(around), np.array(afterwards)
    assert (around_s <= afterwards_s * 1.01).all()
    assert (around_s < afterwards_s * 0.9).sum() >= 10
