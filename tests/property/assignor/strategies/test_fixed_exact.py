"""What the exact search proves about groups with something fixed, judged by trying every assignment."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor.evaluation import validity
from assignor.evaluation.drain.bound import BoundCause, group_bound, lower_bound
from assignor.evaluation.drain.time import drain_s
from assignor.evaluation.drain.work import Work
from assignor.model.group import Group
from assignor.strategies.lag_sticky.options import Options
from assignor.strategies.lag_sticky.solve import SolveResult, solve
from assignor.strategies.registry import strategy
from tests.support.assignors.drain_groups import FREE, lag_sticky, remarks
from tests.support.assignors.drain_judge import soonest_s
from tests.support.assignors.fixed_groups import constrained_lagging_groups, drawn_fixed

_ROUNDING = 1 + 1e-6
_NEAR = 1.002


def solved(group: Group, **options: Any) -> SolveResult:
    terms = Options(**strategy("lag-sticky").check_options({**FREE, **options}))  # type: ignore[arg-type]  # checked
    assert group.capacity is not None
    work = Work.of(group, group.capacity)
    return solve(group, terms, work, lower_bound(work), list)


def test_bound_of_all_tried_is_the_soonest_of_all_that_leave_what_is_fixed() -> None:
    n_tried = 0
    for seed in range(400):
        group = drawn_fixed(seed, fixed_share=0.3)

        bound = group_bound(group)

        assert bound is not None
        best_s = soonest_s(group)
        assert bound.time_s <= best_s * _ROUNDING
        if bound.cause is BoundCause.ALL_TRIED:
            n_tried += 1
            assert bound.time_s == pytest.approx(best_s)
    assert n_tried > 50


@given(group=constrained_lagging_groups(most_partitions=7))
def test_bound_holds_whatever_is_fixed_or_closed(group: Group) -> None:
    bound = group_bound(group)

    assert bound is not None
    best_s = soonest_s(group)
    assert bound.time_s <= best_s * _ROUNDING
    if bound.cause is BoundCause.ALL_TRIED:
        assert bound.time_s == pytest.approx(best_s)


@pytest.mark.parametrize("max_moves", [1, 2, 8])
@pytest.mark.parametrize("fixed_share", [0.0, 0.2, 0.3, 0.5])
def test_small_group_is_drained_as_soon_as_any_assignment_around_what_is_fixed_does(
    fixed_share: float, max_moves: int
) -> None:
    for seed in range(40):
        group = drawn_fixed(seed, fixed_share=fixed_share)

        target = lag_sticky(group, max_moves=max_moves, **FREE)

        validity.check(group, target)
        found_s, best_s = drain_s(group, target.member), soonest_s(group, max_moves=max_moves)
        assert found_s is not None
        assert math.isinf(best_s) or found_s <= best_s * _NEAR


@settings(max_examples=300)
@given(
    group=constrained_lagging_groups(most_partitions=6),
    max_moves=st.integers(0, 4),
    move_cost_s=st.sampled_from((0.0, 5.0)),
)
def test_nothing_costs_less_than_the_start_where_everything_was_tried(
    group: Group, max_moves: int, move_cost_s: float
) -> None:
    result = solved(group, max_moves=max_moves, move_cost_s=move_cost_s)

    start_s = drain_s(group, result.problem.member(result.start))
    best_s = soonest_s(group, max_moves=max_moves, move_cost_s=move_cost_s)
    assert start_s is not None
    # Beyond a day the search compares loads, which are no drain times.
    if result.all_tried and result.best.moves == 0 and len(result.best.partitions) == 0 and start_s < 86_400:
        assert start_s <= best_s * _NEAR + 1e-9


@settings(max_examples=200)
@given(
    group=constrained_lagging_groups(most_partitions=6),
    max_moves=st.integers(0, 4),
    move_cost_s=st.sampled_from((0.0, 5.0)),
)
def test_no_plan_is_what_the_remark_says(group: Group, max_moves: int, move_cost_s: float) -> None:
    terms = {**FREE, "move_cost_s": move_cost_s}
    said = remarks(group, max_moves=max_moves, **terms)
    now_s = drain_s(group, group.owner)

    if "no move: no plan of at most" in said and "drains it sooner" in said:
        best_s = soonest_s(group, max_moves=max_moves, move_cost_s=move_cost_s)
        assert now_s is not None
        assert best_s >= now_s / _NEAR
    if "no move: no assignment is sooner" in said and "by more than" not in said:
        assert now_s is not None
        assert soonest_s(group) >= now_s / _NEAR


@given(group=constrained_lagging_groups(most_partitions=12, most_members=5))
def test_answer_is_always_the_same(group: Group) -> None:
    again = replace(group, lag=group.lag.copy(), rate=group.rate.copy())

    first, second = lag_sticky(group, **FREE), lag_sticky(again, **FREE)

    validity.check(group, first)
    assert np.array_equal(first.member, second.member)
