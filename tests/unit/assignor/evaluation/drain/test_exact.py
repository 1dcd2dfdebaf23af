"""The search of all assignments of a small group; that it finds the soonest is a property, see the bound."""

import math
from dataclasses import replace

import pytest

from assignor.evaluation.drain.cost import CostModel
from assignor.evaluation.drain.exact import SmallAnswer, SmallProblem, soonest

THREE_ON_TWO = SmallProblem(
    lag=[60.0, 50.0, 40.0],
    rate=[0.0, 0.0, 0.0],
    may_read=[[0, 1]] * 3,
    owner=[0, 0, 0],
    capacity=[10.0, 10.0],
    most_held=3,
)


def answer(
    problem: SmallProblem,
    *,
    known_s: float = math.inf,
    most_moves: int = 9,
    enough_s: float = 0.0,
    most_steps: int = 999,
) -> SmallAnswer:
    return soonest(problem, known_s=known_s, most_moves=most_moves, enough_s=enough_s, most_steps=most_steps)


def test_soonest_assignment_is_found_and_proved() -> None:
    found = answer(THREE_ON_TWO)

    assert found.member is not None
    assert (found.cost_s, found.is_complete) == (9.0, True)


@pytest.mark.parametrize(("most_moves", "cost_s"), [(0, 15.0), (1, 9.0)])
def test_no_more_moves_than_allowed(most_moves: int, cost_s: float) -> None:
    assert answer(THREE_ON_TWO, most_moves=most_moves).cost_s == cost_s


@pytest.mark.parametrize(("move_cost_s", "cost_s"), [(1.0, 10.0), (7.0, 15.0)])
def test_moves_have_their_price(move_cost_s: float, cost_s: float) -> None:
    assert answer(replace(THREE_ON_TWO, move_cost_s=move_cost_s)).cost_s == cost_s


def test_no_member_holds_more_than_allowed() -> None:
    found = answer(replace(THREE_ON_TWO, most_held=2, lag=[90.0, 1.0, 1.0]))

    assert found.member is not None
    assert sorted(found.member.count(m) for m in (0, 1)) == [1, 2]


def test_partition_that_must_stay_stays() -> None:
    found = answer(replace(THREE_ON_TWO, may_read=[[0], [0], [0, 1]]))

    assert found.member == [0, 0, 1]


def test_nothing_is_better_than_the_best() -> None:
    found = answer(THREE_ON_TWO, known_s=9.0)

    assert (found.member, found.cost_s, found.is_complete) == (None, 9.0, True)


def test_search_that_ran_out_of_steps_proves_nothing() -> None:
    assert not answer(THREE_ON_TWO, most_steps=3).is_complete


def test_search_ends_with_what_is_enough() -> None:
    found = answer(replace(THREE_ON_TWO, may_read=[[0, 1]] * 3), enough_s=9.0, most_steps=4)

    assert (found.cost_s, found.is_complete) == (9.0, True)


def test_group_that_no_assignment_drains_is_proved_to_be_one() -> None:
    found = answer(replace(THREE_ON_TWO, rate=[6.0, 6.0, 6.0]))

    assert (found.member, found.cost_s, found.is_complete) == (None, math.inf, True)


def test_members_filled_to_the_last_record_drain_what_has_no_lag() -> None:
    assert answer(replace(THREE_ON_TWO, lag=[0.0] * 3, rate=[9.0, 1.0, 10.0])).cost_s == 0.0


def test_overload_is_shared_out_under_a_model_with_a_horizon() -> None:
    model = CostModel(horizon_s=1000.0, floor_s=0.0)

    found = answer(replace(THREE_ON_TWO, rate=[6.0, 6.0, 0.0], model=model, lag=[0.0, 0.0, 40.0]))

    assert found.member is not None
    assert found.member[0] != found.member[1]


def test_alike_partitions_and_members_are_not_tried_in_every_order() -> None:
    alike = SmallProblem(
        lag=[30.0] * 11,
        rate=[0.0] * 11,
        may_read=[[0, 1, 2, 3]] * 11,
        owner=[-1] * 11,
        capacity=[10.0] * 4,
        most_held=11,
    )

    assert answer(alike, most_steps=500).is_complete
