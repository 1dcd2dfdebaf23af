"""What a member loses that is no plan's doing: what clocks make of nothing, and an outage."""

import pytest

from tests.support.planning.judged_walk import LOSING, applied, effect, plan_of, under_it


@pytest.mark.parametrize(("more", "expected"), [(26, "helped"), (27, "hurt")])
def test_lag_that_rises_by_less_than_clocks_may_differ_is_no_loss(more: int, expected: str) -> None:
    """B receives 16 records/s: 80 in five seconds, from the first of four commits to the last."""
    group = applied()
    for number in range(4):
        group.lags = [900, 300 + more * number, 0, 0]
        decision = group.decide(after_s=20)

    assert effect(decision) == expected


def test_member_that_stands_still_is_hurt_by_no_plan() -> None:
    group = applied()
    group.drain_rates = [10, 0, 0, 10]

    assert effect(under_it(group, *LOSING)) is None
    assert [one.lags for one in plan_of(group).witnesses if one.member_id == "b"] == [()]
