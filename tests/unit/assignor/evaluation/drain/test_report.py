import math

import numpy as np
import pytest

from assignor.evaluation import validity
from assignor.evaluation.drain.report import AssignmentReport, report
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from tests.support.assignors.drain_groups import owned
from tests.support.assignors.groups import group, member


def reported(built: Group, to: list[int]) -> AssignmentReport:
    target = Assignment.complete(built, np.array(to, np.int32))
    validity.check(built, target)
    return report(built, target)


def test_members_are_told_before_and_after() -> None:
    figures = reported(owned([300, 200], [100]), [0, 1, 1])

    assert figures.partitions_before.tolist() == [2, 1]
    assert figures.partitions_after.tolist() == [1, 2]
    assert figures.lag_before.tolist() == [500, 100]
    assert figures.lag_after.tolist() == [300, 300]
    assert figures.member_s_before is not None
    assert figures.member_s_before.tolist() == [50, 10]
    assert (figures.before_s, figures.after_s, figures.ratio) == (50, 30, 1)


def test_move_buys_what_would_be_lost_without_it() -> None:
    """Areas are L * L / 20: 500, 100 records before; 300, 200, 100 after."""
    figures = reported(owned([300, 200], [100], []), [0, 2, 1])

    [move] = figures.moves

    assert (move.partition, move.from_member, move.to_member) == (1, 0, 2)
    assert move.without_s == 50
    assert move.saves_record_s == pytest.approx((500**2 - 300**2 - 200**2) / 20)


def test_group_that_was_never_drained_without_a_move_says_so() -> None:
    figures = reported(owned([10, 10], [], rates=[[6.0, 6.0], []]), [0, 1])

    [move] = figures.moves

    assert move.without_s == math.inf
    assert figures.after_s == 2.5


@pytest.mark.parametrize(
    ("built", "to"),
    [
        (group({"t": 1}, member("a", "t", capacity=1.0), lags={"t": [5]}), [0]),
        (group({"t": 1}, member("a", "u", owned={"t": [0]}, capacity=1.0), lags={"t": [5]}), [-1]),
        (group({"t": 1}, member("a", "t", owned={"t": [0]}), member("b", "t"), lags={"t": [5]}), [1]),
    ],
    ids=["nobody gave it", "nobody takes it", "no capacities"],
)
def test_move_with_nothing_to_compare_it_with_buys_nothing_known(built: Group, to: list[int]) -> None:
    [move] = reported(built, to).moves

    assert (move.without_s, move.saves_record_s) == (None, None)


def test_group_without_lag_is_at_its_bound() -> None:
    assert reported(owned([0], [0]), [0, 1]).ratio == 1


@pytest.mark.parametrize(
    "built",
    [owned([5], [], rates=[[20.0], []]), group({"t": 1}, member("a", "t", owned={"t": [0]}))],
    ids=["never", "unknown"],
)
def test_ratio_of_what_is_no_time_is_none(built: Group) -> None:
    assert reported(built, [0]).ratio is None
