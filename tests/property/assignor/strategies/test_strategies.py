"""What every strategy promises, and each strategy against its rule, one partition at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignor.evaluation import validity
from assignor.strategies import lag_aware
from assignor.strategies.handover import next_step
from assignor.strategies.sticky import constrained as constrained_sticky
from tests.support.assignors import literal_rules
from tests.support.assignors.groups import Description, by_name, descriptions, member, owned_by
from tests.support.assignors.groups import group as build
from tests.support.assignors.lag_judge import spread_bounds
from tests.support.assignors.strategies import each_strategy

SCOPES = pytest.mark.parametrize("scope", ["topic", "group"])
TIES = pytest.mark.parametrize("ties", ["lag", "kip"])


@given(description=descriptions(equal=True))
def test_assignment_is_valid_complete_and_the_same_in_any_order_of_the_input(
    description: Description,
) -> None:
    group, turned = description.build(), description.reversed().build()

    for strategy in each_strategy():
        assignment = strategy.assign(group, {})

        validity.check(group, assignment)
        assert by_name(turned, strategy.assign(turned, {})) == by_name(group, assignment)


@given(description=descriptions(equal=True))
def test_hand_over_ends_after_its_second_step(description: Description) -> None:
    group = description.build()

    for strategy in each_strategy():
        target = strategy.assign(group, {})
        first = next_step(group, target, by_number=strategy.joins)
        second = next_step(owned_by(group, first), target, by_number=strategy.joins)

        validity.check(group, first)
        validity.check(group, second)
        assert second.member.tolist() == target.member.tolist()


@given(description=descriptions(equal=True))
def test_first_step_gives_out_only_what_nobody_else_may_be_reading(description: Description) -> None:
    group = description.build()

    for strategy in each_strategy():
        first = next_step(group, strategy.assign(group, {}))

        validity.check(group, first)
        given_out = first.member >= 0
        holder = group.ownership.holder[given_out]
        assert not group.ownership.contested[given_out].any()
        assert ((holder == -1) | (holder == first.member[given_out])).all()


@SCOPES
@TIES
@given(description=descriptions())
def test_lag_aware_equals_the_rule_partition_by_partition(
    ties: lag_aware.Ties, scope: lag_aware.Scope, description: Description
) -> None:
    group = description.build()

    assignment = lag_aware.assign(group, scope=scope, ties=ties)

    validity.check(group, assignment, even="topic")
    assert assignment.member.tolist() == literal_rules.lag_aware(group, scope, ties)


@SCOPES
@given(lags=st.lists(st.integers(0, 50), max_size=60), n_members=st.integers(10, 16))
def test_lag_aware_equals_the_rule_on_both_sides_of_the_switch_to_arrays(
    scope: lag_aware.Scope, lags: list[int], n_members: int
) -> None:
    members = [member(f"m{m}", "t") for m in range(n_members)]
    group = build({"t": len(lags)}, *members, lags={"t": lags})

    assignment = lag_aware.assign(group, scope=scope)

    validity.check(group, assignment, even="topic")
    assert assignment.member.tolist() == literal_rules.lag_aware(group, scope)


@given(description=descriptions(max_lag=1000))
def test_lag_aware_totals_of_a_topic_stay_within_the_certificate(description: Description) -> None:
    group = description.build()

    assignment = lag_aware.assign(group)

    validity.check(group, assignment, even="topic")
    for t, bound in enumerate(spread_bounds(group).tolist()):
        partitions = list(literal_rules.partitions_of(group, t))
        totals = np.bincount(
            assignment.member[partitions][group.readable()[partitions]],
            weights=group.lag[partitions][group.readable()[partitions]],
            minlength=group.n_members,
        )[group.subscriptions.of_topic(t)]
        assert np.ptp(totals) <= bound if len(totals) else bound == 0


@given(description=descriptions(equal=True, max_lag=1000))
def test_lag_aware_group_totals_stay_within_the_widest_certificate(description: Description) -> None:
    group = description.build()

    assignment = lag_aware.assign(group, scope="group")

    validity.check(group, assignment, even="topic")
    assigned = assignment.member >= 0
    totals = np.bincount(assignment.member[assigned], weights=group.lag[assigned], minlength=group.n_members)
    assert not assigned.any() or np.ptp(totals) <= spread_bounds(group).max()


@pytest.mark.parametrize("old_claims", ["drop", "keep"])
@given(description=descriptions(equal=True))
def test_constrained_sticky_equals_the_rule_partition_by_partition(
    old_claims: constrained_sticky.OldClaims, description: Description
) -> None:
    group = description.build()

    assignment = constrained_sticky.assign(group, old_claims=old_claims)

    validity.check(group, assignment, even="group")
    assert assignment.member.tolist() == literal_rules.constrained_sticky(group, old_claims)


@given(description=descriptions(equal=True))
def test_constrained_sticky_keeps_as_many_partitions_as_even_counts_allow(description: Description) -> None:
    group = description.build()

    verdict = validity.check(group, constrained_sticky.assign(group, old_claims="keep"), even="group")

    assert verdict.kept == literal_rules.most_kept_with_even_counts(group)


@given(description=descriptions(equal=True))
def test_constrained_sticky_does_not_move_its_own_result(description: Description) -> None:
    group = description.build()
    settled = owned_by(group, constrained_sticky.assign(group))

    verdict = validity.check(settled, constrained_sticky.assign(settled), even="group")

    assert verdict.moves == 0


@given(description=descriptions(equal=True))
def test_constrained_sticky_settles_when_it_is_run_again_between_the_steps(description: Description) -> None:
    group = description.build()
    after_first = owned_by(group, next_step(group, constrained_sticky.assign(group)))

    again = constrained_sticky.assign(after_first)

    validity.check(group, again, even="group")
    assert next_step(after_first, again).member.tolist() == again.member.tolist()
