"""The exact search and the starts that place everything anew, inside the search of the strategy."""

from dataclasses import replace

import numpy as np
import pytest

from assignor.evaluation.drain.bound import lower_bound
from assignor.evaluation.drain.work import Work
from assignor.model.group import Group
from assignor.strategies.lag_sticky.options import Options
from assignor.strategies.lag_sticky.problem import Problem
from assignor.strategies.lag_sticky.search.exact import tried_in_parts, tried_out
from assignor.strategies.lag_sticky.search.lpt import placed_anew
from assignor.strategies.lag_sticky.search.rounds import packed_in_rounds
from assignor.strategies.lag_sticky.start import build_problem
from assignor.strategies.registry import strategy
from tests.support.assignors.drain_groups import FREE, owned
from tests.support.assignors.groups import group, member


def problem(lagging: Group, **options: object) -> Problem:
    terms = Options(**strategy("lag-sticky").check_options({**FREE, **options}))  # type: ignore[arg-type]  # checked
    assert lagging.capacity is not None
    bound = lower_bound(Work.of(lagging, lagging.capacity))
    return build_problem(lagging, terms, lagging.capacity, bound.time_s)


def test_three_members_exchange_at_once_where_no_two_gain_anything() -> None:
    """Found by trial: 12 s each only if all three change."""
    posed = problem(owned([70, 60], [50, 50], [60, 70, 0]))

    found, is_complete = tried_out(posed, posed.solution({}), 9, 0.0)

    assert (found.makespan_s, is_complete) == (12.0, True)


def test_slowest_shares_out_with_others_until_nothing_relieves_it() -> None:
    posed = problem(owned([90, 50, 40, 30, 20], [10, 5], [10, 15], [1]))

    found = tried_in_parts(posed, posed.solution({}), 9, 0.0)

    assert found.makespan_s == 9.0


@pytest.mark.parametrize("budget", [0, 1])
def test_parts_keep_to_the_budget(budget: int) -> None:
    posed = problem(owned([90, 50, 40], [10], [10]))

    assert tried_in_parts(posed, posed.solution({}), budget, 0.0).moves <= budget


def test_partition_of_a_member_outside_the_part_is_away_wherever_it_is() -> None:
    """m1's partition lies on m0 already: passing it on to m2 costs no further move."""
    posed = problem(owned([50, 50], [50], [0]))

    found = tried_in_parts(posed, posed.solution({2: 0}), 2, 0.0)

    assert found.makespan_s == 5.0
    assert found.moves <= 2


def test_start_from_nothing_uses_fast_members_and_spare_capacity() -> None:
    members = [member("fast", "t", capacity=40.0), member("slow", "t", capacity=10.0)]
    lagging = group({"t": 3}, *members, lags={"t": [300, 50, 50]}, rates={"t": [10.0, 0.0, 0.0]})
    posed = problem(lagging)

    found = min(solution.makespan_s for solution in placed_anew(posed, 10.0, 9))

    assert found == 10.0


def test_start_from_nothing_keeps_to_subscriptions_cap_and_budget() -> None:
    members = [member("a", "t", owned={"t": [0, 1, 2]}, capacity=10.0), member("b", "tu", "t", capacity=10.0)]
    posed = problem(group({"t": 3, "tu": 1}, *members, lags={"t": [9, 9, 9], "tu": [9]}), count_cap=2)

    solutions = placed_anew(posed, 1.0, 3)

    assert solutions
    for solution in solutions:
        assert posed.member(solution)[3] == 1
        assert posed.counts(solution).tolist() == [2, 2]
    assert placed_anew(posed, 1.0, 0) == []


def test_rounds_fill_each_gap_once_and_fail_where_nothing_fits() -> None:
    posed = problem(owned([1] * 6, []))
    residual, count = np.array([2.0, 4.0]), np.zeros(2, np.int64)

    found = packed_in_rounds(posed, np.arange(6), np.ones(6), residual.copy(), count.copy())
    too_many = packed_in_rounds(posed, np.arange(6), np.full(6, 1.1), residual.copy(), count.copy())

    assert found is not None
    assert np.bincount(found).tolist() == [2, 4]
    assert too_many is None


def constrained(posed: Group, *, fixed: list[int], closed: list[int] | None = None) -> Group:
    of_member = np.isin(np.arange(posed.n_members), closed or [])
    return replace(posed, fixed=np.isin(np.arange(posed.n_partitions), fixed), closed=of_member)


def test_everything_is_tried_around_what_is_fixed_and_without_closed_members() -> None:
    posed = problem(constrained(owned([80, 40], [50, 30], [0], []), fixed=[0], closed=[3]))

    found, is_complete = tried_out(posed, posed.solution({}), 9, 0.0)

    assert (found.makespan_s, is_complete) == (8.0, True)
    assert posed.member(found)[0] == 0
    assert posed.counts(found)[3] == 0


def test_member_with_nothing_but_fixed_partitions_does_not_end_the_sharing() -> None:
    posed = problem(constrained(owned([900], [90, 50, 40], [10]), fixed=[0]))

    found = tried_in_parts(posed, posed.solution({}), 9, 0.0)

    assert sorted((found.lag / 10).tolist()) == [9.0, 10.0, 90.0]


def test_start_from_nothing_leaves_what_is_fixed_and_counts_it() -> None:
    posed = problem(constrained(owned([90, 20, 20], [10], []), fixed=[0], closed=[2]), count_cap=2)

    solutions = placed_anew(posed, 9.0, 9)

    assert solutions
    for solution in solutions:
        assert posed.member(solution)[0] == 0
        assert posed.counts(solution).tolist() == [2, 2, 0]


def test_rounds_pass_over_closed_members() -> None:
    posed = problem(constrained(owned([1] * 6, [], []), fixed=[], closed=[1]))

    found = packed_in_rounds(posed, np.arange(6), np.ones(6), np.full(3, 9.0), np.zeros(3, np.int64))

    assert found is not None
    assert set(found.tolist()) == {0, 2}
