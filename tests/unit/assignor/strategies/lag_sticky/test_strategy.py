"""What `lag-sticky` does in groups small enough to see what is right."""

import math

import numpy as np
import pytest

from assignor.evaluation import validity
from assignor.evaluation.drain.bound import lower_bound_s
from assignor.evaluation.drain.time import drain_s
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.sticky import strategy as sticky
from tests.support.assignors.drain_groups import FREE, lag_sticky, moved, owned, remarks
from tests.support.assignors.groups import by_name, group, member, owned_by


def answered(lagging: Group, **options: object) -> dict[str, list[str]]:
    """Partitions by member, the answer checked."""
    target = lag_sticky(lagging, **options)
    validity.check(lagging, target)
    return by_name(lagging, target)


def time_s(lagging: Group, target: Assignment) -> float | None:
    return drain_s(lagging, target.member)


def test_buried_member_gives_one_partition_to_the_idle_one() -> None:
    lagging = owned([500, 600, 10], [0], [20])

    assert answered(lagging, **{**FREE, "move_cost_s": 2.0}) == {
        "m0": ["t-0", "t-2"],
        "m1": ["t-1", "t-3"],
        "m2": ["t-4"],
    }


def test_arrivals_count_beside_lag() -> None:
    """By lag alone t-1 would go; but whoever has it is left with 2 records/s to drain with."""
    lagging = owned([200, 100], [150], rates=[[0.0, 8.0], [0.0]])

    assert answered(lagging, **FREE) == {"m0": ["t-1"], "m1": ["t-0", "t-2"]}


def test_fast_member_takes_more_than_slow_ones() -> None:
    members = [
        member("fast", "t", capacity=30.0),
        member("slow", "t", owned={"t": [0, 1, 2, 3]}, capacity=10.0),
    ]
    lagging = group({"t": 4}, *members, lags={"t": [100, 100, 100, 100]})

    counts = validity.check(lagging, lag_sticky(lagging, max_moves=4, **FREE)).counts

    assert counts.tolist() == [3, 1]


def test_two_exchange_when_no_gift_helps() -> None:
    lagging = owned([600, 100], [300, 100], capacity=10.0)

    target = lag_sticky(lagging, **FREE)

    validity.check(lagging, target)
    assert time_s(lagging, target) == 60.0


def test_partition_passes_through_a_third_member_where_subscriptions_differ() -> None:
    """The buried one shares no topic with the idle one; a member between them reads both."""
    members = [
        member("buried", "a", owned={"a": [0, 1]}, capacity=10.0),
        member("between", "a", "b", owned={"b": [0]}, capacity=10.0),
        member("idle", "b", capacity=10.0),
    ]
    lagging = group({"a": 2, "b": 1}, *members, lags={"a": [500, 500], "b": [500]})

    target = lag_sticky(lagging, **FREE)

    validity.check(lagging, target)
    assert time_s(lagging, target) == 50.0


@pytest.mark.parametrize(("max_moves", "seconds"), [(0, 90.0), (1, 60.0), (2, 30.0)])
def test_budget_limits_the_moves(max_moves: int, seconds: float) -> None:
    lagging = owned([300, 300, 300], [0], [0])

    target = lag_sticky(lagging, max_moves=max_moves, **FREE)

    validity.check(lagging, target)
    assert moved(lagging, target) == max_moves
    assert time_s(lagging, target) == seconds


def test_default_budget_is_a_tenth_and_at_least_two() -> None:
    few, many = owned([300] * 9, [0]), owned([300] * 40, [0])

    assert moved(few, lag_sticky(few, **FREE)) == 2
    assert moved(many, lag_sticky(many, **FREE)) == 5


@pytest.mark.parametrize(("price_s", "moves"), [(29.0, 2), (31.0, 0)])
def test_move_that_saves_less_than_its_price_is_not_made(price_s: float, moves: int) -> None:
    lagging = owned([300, 300, 300], [0], [0])

    target = lag_sticky(lagging, **{**FREE, "move_cost_s": price_s})

    validity.check(lagging, target)
    assert moved(lagging, target) == moves


@pytest.mark.parametrize(("floor_s", "moves"), [(19.0, 1), (21.0, 0)])
def test_times_within_the_floor_are_good_enough(floor_s: float, moves: int) -> None:
    lagging = owned([100, 100], [0])

    target = lag_sticky(lagging, **{**FREE, "floor_s": floor_s})

    validity.check(lagging, target)
    assert moved(lagging, target) == moves


@pytest.mark.parametrize(("rate", "moves"), [(4.4, 0), (4.7, 1)])
def test_member_filled_by_arrivals_is_relieved_even_without_lag(rate: float, moves: int) -> None:
    lagging = owned([0, 0], [0], rates=[[rate, rate], [0.0]])

    target = lag_sticky(lagging, floor_s=20.0)

    validity.check(lagging, target)
    assert moved(lagging, target) == moves


@pytest.mark.parametrize(("min_gain", "moves"), [(0.49, 1), (0.51, 0)])
def test_plan_must_save_its_share_of_the_lag_area(min_gain: float, moves: int) -> None:
    """20 s of 200 records are 2000 record-seconds, twice 10 s of 100 are 1000: half is saved."""
    lagging = owned([100, 100], [0])

    target = lag_sticky(lagging, **{**FREE, "min_gain": min_gain})

    validity.check(lagging, target)
    assert moved(lagging, target) == moves


@pytest.mark.parametrize(
    ("pause", "moves"),
    [
        ({"move_pause_s": 9.0}, 1),
        ({"move_pause_s": 11.0}, 0),
        ({"group_pause_s": 4.0}, 1),
        ({"group_pause_s": 6.0}, 0),
    ],
    ids=["short", "long", "short for all", "long for all"],
)
def test_plan_must_save_more_than_its_pauses_cost(pause: dict[str, float], moves: int) -> None:
    """1000 record-seconds against 100 records for the pause, or 200 for the pause of the whole group."""
    lagging = owned([100, 100], [0])

    target = lag_sticky(lagging, **{**FREE, **pause})

    validity.check(lagging, target)
    assert moved(lagging, target) == moves


def test_hopeless_partition_does_not_hide_what_can_be_done_for_the_rest() -> None:
    lagging = owned([100], [900, 900], [0], rates=[[20.0], [0.0, 0.0], [0.0]])

    assert answered(lagging, **FREE) == {"m0": ["t-0"], "m1": ["t-1"], "m2": ["t-2", "t-3"]}


def test_member_between_the_hopeless_one_and_the_idle_ones_is_relieved_although_its_largest_partition_stays() -> (
    None
):
    lagging = owned([100], [900, 300, 300], [0], [0], rates=[[20.0], [0.0] * 3, [0.0], [0.0]])

    target = lag_sticky(lagging, **FREE)

    assert sorted(np.bincount(target.member, weights=lagging.lag)) == [100, 300, 300, 900]


def test_group_without_owners_is_dealt_out_evenly() -> None:
    lagging = group(
        {"t": 6},
        *(member(f"m{m}", "t", capacity=10.0) for m in range(3)),
        lags={"t": [300, 200, 200, 100, 50, 50]},
    )

    target = lag_sticky(lagging, max_moves=0)

    validity.check(lagging, target)
    assert time_s(lagging, target) == 30.0


def test_partitions_without_lag_go_where_there_are_fewest() -> None:
    lagging = group({"t": 30}, member("a", "t", owned={"t": [0, 1]}, capacity=10.0), member("b", "t"))

    counts = validity.check(lagging, lag_sticky(lagging)).counts

    assert counts.tolist() == [15, 15]


def test_group_of_unknown_capacity_is_evened_as_if_all_were_equal() -> None:
    members = [member("a", "t", owned={"t": [0, 1]}), member("b", "t")]
    lagging = group({"t": 2}, *members, lags={"t": [100_000, 90_000]})

    assert answered(lagging) == {"a": ["t-0"], "b": ["t-1"]}
    assert remarks(lagging) == "no member's capacity is known: 1000 records/s assumed for each"


def test_busy_group_of_unknown_capacity_that_keeps_up_is_left_alone() -> None:
    members = [member("a", "t", owned={"t": [0, 1]}), member("b", "t", owned={"t": [2]})]
    lagging = group({"t": 3}, *members, lags={"t": [9000, 9000, 0]}, rates={"t": [3000.0, 3000.0, 1.0]})

    assert moved(lagging, lag_sticky(lagging)) == 0


@pytest.mark.parametrize(
    "lagging",
    [
        group({}),
        group({"t": 2}),
        group({"t": 0}, member("a", "t", capacity=1.0)),
        group({"t": 2}, member("a", "u", owned={"t": [0]}, capacity=1.0), lags={"t": [5, 5]}),
    ],
    ids=["empty", "no members", "no partitions", "nobody subscribes"],
)
def test_group_with_nothing_to_assign_has_nothing_assigned(lagging: Group) -> None:
    target = lag_sticky(lagging)

    validity.check(lagging, target)
    assert (target.member == -1).all()


def test_owner_that_no_longer_subscribes_gives_up_beside_the_budget() -> None:
    members = [member("a", "u", owned={"t": [0, 1]}, capacity=10.0), member("b", "t", "u", capacity=10.0)]
    lagging = group({"t": 2, "u": 1}, *members, lags={"t": [50, 50], "u": [0]})

    assert answered(lagging, max_moves=0)["b"][:2] == ["t-0", "t-1"]


@pytest.mark.parametrize("lag", [0, 100])
def test_count_cap_is_kept_with_lag_and_without(lag: int) -> None:
    lagging = owned([lag] * 5, [0], [0])

    counts = validity.check(lagging, lag_sticky(lagging, max_moves=0, count_cap=3)).counts

    assert counts.max() <= 3


def test_idle_member_gets_no_more_than_count_cap_however_fast_it_is() -> None:
    owners = [member(f"m{m}", "t", owned={"t": range(3 * m, 3 * m + 3)}, capacity=100.0) for m in range(3)]
    lagging = group({"t": 9}, *owners, member("new", "t", capacity=1000.0), rates={"t": [20.0] * 9})

    counts = validity.check(lagging, lag_sticky(lagging, max_moves=6, count_cap=3)).counts

    assert counts.tolist() == [2, 2, 2, 3]


def test_member_above_the_cap_keeps_its_heaviest_partitions() -> None:
    lagging = owned([5, 30, 10], [0])

    assert answered(lagging, max_moves=0, count_cap=2)["m0"] == ["t-1", "t-2"]


def test_count_cap_that_cannot_hold_is_raised_and_said() -> None:
    lagging = owned([0, 0, 0], [0])

    target = lag_sticky(lagging, count_cap=1)

    assert validity.check(lagging, target).counts.max() == 2
    assert "count_cap is 2: with 1 there is no place for every partition" in target.remarks


def test_count_cap_holds_where_dealing_at_random_would_break_it() -> None:
    """Both read t; only b reads u. If b gets t, u has no place below the cap."""
    members = [member("a", "t", capacity=10.0), member("b", "t", "u", capacity=100.0)]
    lagging = group({"t": 2, "u": 2}, *members, lags={"t": [90, 80], "u": [1, 1]})

    counts = validity.check(lagging, lag_sticky(lagging, count_cap=2, **FREE)).counts

    assert counts.tolist() == [2, 2]


def test_even_counts_stay_even_and_lag_decides_which_partitions() -> None:
    lagging = owned([600, 500, 10], [0, 0, 0], [20, 0, 0])

    target = lag_sticky(lagging, counts="even", max_moves=4, **FREE)

    assert validity.check(lagging, target).counts.tolist() == [3, 3, 3]
    assert time_s(lagging, target) == 60.0


def test_even_counts_come_first_also_without_lag() -> None:
    lagging = owned([0] * 5, [0])

    target = lag_sticky(lagging, counts="even", max_moves=0)

    validity.check(lagging, target)
    assert target.member.tolist() == sticky.assign(lagging).member.tolist()


def test_idle_member_gets_its_share_of_arrivals_although_nobody_is_late() -> None:
    lagging = owned([0, 0, 0, 0], [], rates=[[2.0, 1.0, 1.0, 1.0], []])

    target = lag_sticky(lagging)

    validity.check(lagging, target)
    received = np.bincount(target.member, weights=lagging.rate)
    assert received.tolist() == [3.0, 2.0]


def test_idle_member_without_any_arrivals_gets_its_share_of_partitions() -> None:
    lagging = owned([0] * 6, [])

    counts = validity.check(lagging, lag_sticky(lagging, max_moves=6)).counts

    assert counts.tolist() == [3, 3]


def test_idle_member_is_given_no_more_than_the_budget() -> None:
    lagging = owned([0] * 6, [])

    assert moved(lagging, lag_sticky(lagging, max_moves=1)) == 1


def test_only_partition_of_a_member_is_not_passed_to_a_faster_idle_one() -> None:
    members = [
        member("a", "t", owned={"t": [0]}, capacity=10.0),
        member("b", "t", owned={"t": [1, 2]}, capacity=10.0),
        member("fast", "t", capacity=30.0),
    ]
    lagging = group({"t": 3}, *members, rates={"t": [8.0, 0.5, 0.25]})

    assert answered(lagging) == {"a": ["t-0"], "b": ["t-2"], "fast": ["t-1"]}


@pytest.mark.parametrize(
    ("rates", "taken"),
    [
        ([[8.0], [0.5, 0.5], []], 0.5),
        ([[4.0, 4.0], [1.0], []], 4.0),
        ([[7.0], [2.0, 0.0], []], 0.0),
    ],
    ids=["not the only one of another", "more than its share", "nothing but a change of places"],
)
def test_idle_member_gets_something_if_anybody_has_two(rates: list[list[float]], taken: float) -> None:
    lagging = owned(*([0] * len(mine) for mine in rates), rates=rates)

    target = lag_sticky(lagging, floor_s=100.0)

    validity.check(lagging, target)
    assert moved(lagging, target) == 1
    assert lagging.rate[target.member == 2].tolist() == [taken]


def test_slow_idle_member_is_not_given_what_it_could_not_drain() -> None:
    members = [
        member("a", "t", owned={"t": [0, 1]}, capacity=100.0),
        member("slow", "t", capacity=1.0),
    ]
    lagging = group({"t": 2}, *members, rates={"t": [40.0, 30.0]})

    assert moved(lagging, lag_sticky(lagging)) == 0


def test_large_group_is_drained_as_soon_as_its_largest_partition_allows() -> None:
    random = np.random.default_rng(5)
    lags = (random.pareto(1.2, 3000) * 100).astype(int)
    lagging = owned(*(lags[m::30].tolist() for m in range(30)), capacity=1000.0)

    target = lag_sticky(lagging, max_moves=3000, **FREE)

    validity.check(lagging, target)
    found_s, best_s = time_s(lagging, target), max(float(lags.max()), lags.sum() / 30) / 1000
    assert found_s is not None
    assert math.isclose(found_s, best_s, rel_tol=0.01)


def test_worked_example_of_the_module_holds() -> None:
    lagging = owned([900, 800, 700], [10], [10])

    target = lag_sticky(lagging)

    validity.check(lagging, target)
    assert (drain_s(lagging, lagging.owner), drain_s(lagging, target.member)) == (240, 90)
    assert lower_bound_s(lagging) == 90
    assert target.member[0] == 0
    assert moved(lagging, target) == 2


@pytest.mark.parametrize("capacity", [None, 38_000.0, 19_000.0])
def test_applied_target_is_moved_again_only_where_capacities_are_assumed(capacity: float | None) -> None:
    """They are twice what the busiest receives: 38,000 records/s before, and 24,000 once b has t-1."""
    members = [
        member("a", "t", owned={"t": range(4)}, capacity=capacity),
        member("b", "t", capacity=capacity),
    ]
    lags, rates = [2000, 7000, 2000, 3000], [0.0, 7000.0, 4000.0, 8000.0]
    lagging = group({"t": 4}, *members, lags={"t": lags}, rates={"t": rates})

    target = lag_sticky(lagging, max_moves=4, **FREE)
    again = lag_sticky(owned_by(lagging, target), max_moves=4, **FREE)

    assert (again.member.tolist() == target.member.tolist()) == (capacity is not None)
