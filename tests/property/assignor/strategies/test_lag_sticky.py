"""What `lag-sticky` promises for every group, with the best of all assignments as judge where groups are small."""

import math
from dataclasses import replace
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from assignor.evaluation import validity
from assignor.evaluation.drain.bound import lower_bound_s
from assignor.evaluation.drain.time import drain_s
from assignor.model.group import Group
from assignor.strategies import lag_aware
from assignor.strategies.lag_sticky import strategy as strategy_module
from assignor.strategies.sticky import strategy as sticky
from tests.support.assignors.drain_groups import (
    FREE,
    OPTIONS,
    lag_sticky,
    lagging_groups,
    moved,
    time_s,
    to_idle,
)
from tests.support.assignors.drain_judge import soonest_s
from tests.support.assignors.groups import Description, by_name, descriptions, group, member, owned_by

FEW = settings(max_examples=40)


@FEW
@given(group=lagging_groups(), options=OPTIONS, max_moves=st.integers(0, 6))
def test_plan_keeps_to_the_budget_is_never_later_and_above_the_bound(
    group: Group, options: dict[str, Any], max_moves: int
) -> None:
    target = lag_sticky(group, max_moves=max_moves, **options)

    validity.check(group, target)
    before_s, bound_s = drain_s(group, group.owner), lower_bound_s(group)
    assert before_s is not None
    assert bound_s is not None
    assert moved(group, target) <= max_moves
    assert bound_s * (1 - 1e-9) <= time_s(group, target) <= before_s * (1 + 1e-9)


@given(group=lagging_groups(), less=st.sampled_from((1, 5, 10, 30)), known=st.booleans())
def test_where_nobody_is_late_a_search_would_have_said_the_same(group: Group, less: int, known: bool) -> None:
    capacity = group.capacity if known else None
    group = replace(group, lag=group.lag // less, rate=group.rate / 10, capacity=capacity)
    group = owned_by(group, sticky.assign(group))

    target = lag_sticky(group)
    with mock.patch.object(strategy_module, "nobody_is_late", return_value=False):
        searched = lag_sticky(group)

    assert target.member.tolist() == searched.member.tolist()
    assert target.remarks == searched.remarks


@FEW
@given(group=lagging_groups())
def test_with_every_move_it_is_no_later_than_other_strategies(group: Group) -> None:
    target = lag_sticky(group, max_moves=group.n_partitions, **FREE)

    validity.check(group, target)
    others = (lag_aware.assign(group), lag_aware.assign(group, scope="group"), sticky.assign(group))
    assert time_s(group, target) <= min(time_s(group, other) for other in others) * (1 + 1e-9)


@FEW
@given(group=lagging_groups(), options=OPTIONS)
def test_applied_plan_is_not_moved_again(group: Group, options: dict[str, Any]) -> None:
    target = lag_sticky(group, max_moves=group.n_partitions, **options)
    applied = owned_by(group, target)

    again = lag_sticky(applied, max_moves=group.n_partitions, **options)

    validity.check(applied, again)
    assert again.member.tolist() == target.member.tolist()


@FEW
@given(description=descriptions(max_lag=100_000))
def test_order_of_the_input_does_not_matter(description: Description) -> None:
    group, turned = description.build(), description.reversed().build()
    options = {**FREE, "max_moves": 3}

    target = lag_sticky(group, **options)

    validity.check(group, target)
    assert by_name(turned, lag_sticky(turned, **options)) == by_name(group, target)


@st.composite
def groups_that_fast_members_join(draw: st.DrawFn) -> Group:
    """Groups that hardly lag, with members that hold nothing and could do the work of all others."""
    old, rate = draw(st.integers(1, 3)), draw(st.sampled_from((0.0, 1.0, 2.0)))
    new, owned_each = draw(st.integers(1, 2)), draw(st.integers(2, 4))
    members = [
        member(f"m{m}", "t", owned={"t": range(m * owned_each, (m + 1) * owned_each)}, capacity=10.0)
        for m in range(old)
    ]
    members += [member(f"n{m}", "t", capacity=draw(st.sampled_from((30.0, 100.0)))) for m in range(new)]
    n = old * owned_each
    lag = draw(st.sampled_from((0, 20)))
    return group({"t": n}, *members, lags={"t": [lag] * n}, rates={"t": [rate] * n})


@FEW
@given(
    group=lagging_groups() | groups_that_fast_members_join(),
    cap=st.integers(1, 5),
    max_moves=st.none() | st.integers(0, 8),
)
def test_count_cap_holds_whenever_it_can(group: Group, cap: int, max_moves: int | None) -> None:
    target = lag_sticky(group, count_cap=cap, max_moves=max_moves, **FREE)

    counts = validity.check(group, target).counts
    least = int(validity.check(group, sticky.assign(group)).counts.max(initial=0))
    assert counts.max(initial=0) <= max(cap, least)


@FEW
@given(group=lagging_groups())
def test_even_counts_are_those_of_sticky(group: Group) -> None:
    target = lag_sticky(group, counts="even", **FREE)

    counts = validity.check(group, target).counts
    assert sorted(counts) == sorted(validity.check(group, sticky.assign(group)).counts)


@FEW
@given(group=lagging_groups(), max_moves=st.integers(0, 6))
def test_monotone_plan_is_not_later_with_one_move_more(group: Group, max_moves: int) -> None:
    options = {**FREE, "monotone": "yes"}

    less = lag_sticky(group, max_moves=max_moves, **options)
    more = lag_sticky(group, max_moves=max_moves + 1, **options)

    validity.check(group, less)
    validity.check(group, more)
    assert time_s(group, more) <= time_s(group, less) * (1 + 1e-9)


@FEW
@given(
    group=lagging_groups(most_partitions=8), max_moves=st.integers(0, 8), price_s=st.sampled_from((0.0, 5.0))
)
def test_plan_is_not_far_from_the_best_there_is(group: Group, max_moves: int, price_s: float) -> None:
    options = {**FREE, "move_cost_s": price_s}

    target = lag_sticky(group, max_moves=max_moves, **options)

    validity.check(group, target)
    best_s = soonest_s(group, max_moves=max_moves, move_cost_s=price_s)
    found_s = time_s(group, target) + price_s * moved(group, target)
    assert found_s >= best_s * (1 - 1e-9)
    assert math.isinf(found_s) == math.isinf(best_s)
    # Work for those that hold nothing has no price.
    found_s -= price_s * to_idle(group, target)
    assert math.isinf(best_s) or found_s <= best_s * 1.2 + price_s
