"""Unequal subscriptions: the most even counts there are, and the fewest moves that lead to them."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from assignor.errors import InvalidAssignmentError
from assignor.evaluation import validity
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.sticky.unequal.solver import assign_unequal
from tests.support.assignors.even_groups import unequal_groups
from tests.support.assignors.even_judge import best, has_better_exchange, n_count_vectors
from tests.support.assignors.groups import Description, by_name, descriptions, owned_by


@settings(max_examples=300)
@given(description=descriptions(equal=False))
def test_no_assignment_has_more_even_counts_or_as_even_ones_with_fewer_moves(
    description: Description,
) -> None:
    group = description.build()
    assume(n_count_vectors(group) <= 1000)

    verdict = validity.check(group, assign_unequal(group), even="optimal")

    counts, kept = best(group)
    assert sorted(verdict.counts.tolist(), reverse=True) == counts
    assert verdict.kept == kept


@settings(max_examples=300)
@given(group=unequal_groups())
def test_no_exchange_of_partitions_improves_the_result(group: Group) -> None:
    assignment = assign_unequal(group)

    validity.check(group, assignment, even="optimal")
    assert not has_better_exchange(group, assignment)


@settings(max_examples=300)
@given(group=unequal_groups(), seed=st.integers(0, 2**32 - 1))
def test_result_after_some_churn_cannot_be_improved(group: Group, seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = assign_unequal(group).member
    churned = np.where(rng.random(len(target)) < 0.2, rng.integers(-1, group.n_members, len(target)), target)
    changed = owned_by(group, Assignment.complete(group, churned.astype(np.int32)))

    again = assign_unequal(changed)

    validity.check(changed, again, even="optimal")
    assert not has_better_exchange(changed, again)


@given(group=unequal_groups())
def test_result_is_kept_as_it_is(group: Group) -> None:
    settled = owned_by(group, assign_unequal(group))

    again = assign_unequal(settled)

    verdict = validity.check(settled, again, even="optimal")
    assert verdict.moves == 0


@given(description=descriptions())
def test_order_of_the_input_does_not_matter(description: Description) -> None:
    group, turned = description.build(), description.reversed().build()

    assignment = assign_unequal(group)

    validity.check(group, assignment, even="optimal")
    assert by_name(turned, assign_unequal(turned)) == by_name(group, assignment)


@given(description=descriptions(equal=True))
def test_equal_subscriptions_give_counts_within_one(description: Description) -> None:
    group = description.build()

    assignment = assign_unequal(group)

    validity.check(group, assignment, even="group")
    validity.check(group, assignment, even="optimal")


@given(group=unequal_groups(), seed=st.integers(0, 2**32 - 1))
def test_certificate_refuses_exactly_the_counts_that_can_be_evened(group: Group, seed: int) -> None:
    rng = np.random.default_rng(seed)
    assignment = assign_unequal(group)
    at = np.nonzero(assignment.member >= 0)[0]
    assume(len(at) > 0)
    partition = int(rng.choice(at))
    other = assignment.member.copy()
    other[partition] = rng.choice(group.subscriptions.of_topic(int(group.topics.topic_of[partition])))
    changed = Assignment.complete(group, other)

    most_even = validity.check(group, assignment, even="optimal").counts
    counts = validity.check(group, changed).counts

    if (np.sort(counts) == np.sort(most_even)).all():
        validity.check(group, changed, even="optimal")
    else:
        with pytest.raises(InvalidAssignmentError, match="less even than possible"):
            validity.check(group, changed, even="optimal")
