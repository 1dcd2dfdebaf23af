"""Steps towards a target that moves more than one plan may."""

import numpy as np
import pytest

from assignor.evaluation.validity import check
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from pipeline.planning.problem.steps import evens_counts, moves_of, step_towards
from tests.support.assignors.groups import group, member


def three_of_four_on_a(**capacity: float) -> Group:
    return group(
        {"t": 4},
        member("a", "t", owned={"t": (0, 1, 2)}, **capacity),
        member("b", "t", owned={"t": (3,)}, **capacity),
        member("c", "t", **capacity),
        lags={"t": [100, 300, 200, 50]},
    )


@pytest.mark.parametrize("capacity", [{"capacity": 10.0}, {}], ids=["capacities", "lag alone"])
def test_heaviest_of_the_latest_member_goes_first_and_to_the_earliest(capacity: dict[str, float]) -> None:
    lagging = three_of_four_on_a(**capacity)
    target = Assignment.complete(lagging, np.array([1, 2, 0, 0], np.int32))

    step = step_towards(lagging, target, 1, by_number=False)

    check(lagging, step)
    assert step.member.tolist() == [0, 2, 0, 1]


def test_target_of_few_moves_is_its_own_step() -> None:
    lagging = three_of_four_on_a()
    target = Assignment.complete(lagging, np.array([1, 2, 0, 1], np.int32))

    assert step_towards(lagging, target, 2, by_number=False) is target


def two_topics(owned_by_a: dict[str, tuple[int, ...]]) -> Group:
    return group({"t": 3, "u": 3}, member("a", "t", "u", owned=owned_by_a), member("b", "t", "u"))


def test_partitions_of_one_number_are_made_together() -> None:
    joined = two_topics({"t": (0, 1, 2), "u": (0, 1, 2)})
    target = Assignment.complete(joined, np.array([1, 0, 1, 1, 0, 1], np.int32))

    step = step_towards(joined, target, 3, by_number=True)

    check(joined, step)
    assert step.member.tolist() == [1, 0, 0, 1, 0, 0]


@pytest.mark.parametrize(
    "owned_by_a", [{"t": (0, 1, 2), "u": (0, 1, 2)}, {"t": (0, 1, 2), "u": (0, 1)}], ids=str
)
def test_where_no_number_may_move_or_one_would_be_torn_apart_there_is_no_step(
    owned_by_a: dict[str, tuple[int, ...]],
) -> None:
    joined = two_topics(owned_by_a)
    target = Assignment.complete(joined, np.array([1, 0, 1, 1, 0, 1], np.int32))
    most = 1 if len(owned_by_a["u"]) == 3 else 0

    assert step_towards(joined, target, most, by_number=True) is target


def test_what_nobody_owns_is_no_move() -> None:
    lagging = group({"t": 3}, member("a", "t", owned={"t": (0,)}), member("b", "t"))

    assert moves_of(lagging, np.array([1, 1, 0])).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("options", "closer"),
    [({"count_cap": 2}, True), ({"count_cap": 3}, False), ({"counts": "even"}, True), ({}, False)],
    ids=str,
)
def test_counts_come_closer_to_what_the_options_ask_for(options: dict[str, object], closer: bool) -> None:
    assert evens_counts(three_of_four_on_a(), np.array([0, 0, 2, 1]), options) == closer
