"""Groups with partitions that no member drains, and groups in which more arrives than all drain together."""

import numpy as np

from assignor.evaluation import validity
from assignor.evaluation.drain.time import sums_held
from assignor.model.group import Group
from tests.support.assignors.drain_groups import FREE, lag_sticky, moved, owned, remarks, time_s
from tests.support.assignors.groups import group, member


def moves(lagging: Group, **options: object) -> list[tuple[str, str, str]]:
    target = lag_sticky(lagging, **options)
    validity.check(lagging, target)
    ids = lagging.member_ids
    return [
        (lagging.topics.name(p), ids[lagging.owner[p]], ids[target.member[p]])
        for p in np.flatnonzero(lagging.owner != target.member).tolist()
    ]


def beside_a_hopeless_partition(hopeless_rate: float = 20_000.0) -> Group:
    """T-0 fills twenty members; b never drains, and would in 90 s with one partition less."""
    return owned(
        [9_000] * 3,
        [9_000] * 3,
        [9_000] * 3,
        rates=[[hopeless_rate, 150, 150], [400, 400, 400], [150, 150, 150]],
        capacity=1000.0,
    )


def test_hopeless_partition_does_not_take_the_move_that_heals_another_member() -> None:
    for rate in (1_050.0, 3_000.0, 20_000.0):
        plan = moves(beside_a_hopeless_partition(rate))

        assert [(giver, taker) for _, giver, taker in plan] == [("m1", "m2")]


def test_three_hopeless_partitions_of_eight_members_do_not_either() -> None:
    rates = [[300.0] * 4, *([125.0] * 4 for _ in range(7))]
    for m in (2, 4, 6):
        rates[m][0] = 3_000.0
    lagging = owned(*([10_000] * 4 for _ in range(8)), rates=rates, capacity=1000.0)

    target = lag_sticky(lagging)

    assert {giver for _, giver, _ in moves(lagging)}.isdisjoint({"m2", "m4", "m6"})
    assert sums_held(lagging.rate, target.member, 8)[0] < 1000.0


def test_hopeless_partition_is_named() -> None:
    assert "partition t-0 alone needs 20.0 members" in remarks(beside_a_hopeless_partition())


def test_overload_is_not_spread_to_a_member_that_drains() -> None:
    lagging = owned([100] * 5, [100] * 2, rates=[[4.0] * 5, [4.0] * 2])

    assert moves(lagging, **FREE) == []


def test_member_without_work_takes_what_it_drains_of_an_overload_and_no_more() -> None:
    lagging = owned([100] * 6, [], rates=[[4.0] * 6, []])

    assert len(moves(lagging, **FREE)) == 2


def test_what_falls_behind_beside_a_hopeless_partition_goes_to_who_has_nothing_to_read() -> None:
    lagging = owned([9_000, 900, 900], [], rates=[[20.0, 1.0, 1.0], []])

    assert moves(lagging) == [("t-1", "m0", "m1"), ("t-2", "m0", "m1")]


def test_what_takes_a_hopeless_partition_much_of_its_time_goes_to_others() -> None:
    much = owned([9_000, 1, 1], [], rates=[[20.0, 1.0, 1.0], []])
    little = owned([9_000, 1, 1], [], rates=[[40.0, 1.0, 1.0], []])

    assert moves(much) == [("t-1", "m0", "m1"), ("t-2", "m0", "m1")]
    assert moves(little) == []


def test_nobody_is_made_the_slowest_for_what_falls_behind_beside_a_hopeless_partition() -> None:
    lagging = owned([9_000, 900], [300], [100], rates=[[20.0, 0.0], [0.0], [0.0]])

    assert moves(lagging) == []


def test_hopeless_partition_without_an_owner_has_one_afterwards() -> None:
    lagging = group(
        {"t": 3},
        member("a", "t", owned={"t": [0]}, capacity=10.0),
        member("b", "t", owned={"t": [1]}, capacity=10.0),
        lags={"t": [10, 10, 10]},
        rates={"t": [1.0, 1.0, 20.0]},
    )

    target = lag_sticky(lagging)

    validity.check(lagging, target)
    assert target.member[2] >= 0
    assert moved(lagging, target) == 0


def test_exchange_that_more_than_halves_the_time_is_worth_its_pauses() -> None:
    """A pause delays what could have been read in it, not all that waits."""
    lagging = group(
        {"t": 3, "u": 1},
        member("a", "t", "u", owned={"t": [2], "u": [0]}, capacity=6100.0),
        member("b", "t", owned={"t": [0, 1]}, capacity=6100.0),
        lags={"t": [46_577, 17_993, 161_559], "u": [54_981]},
        rates={"t": [3302.0, 2334.0, 633.0], "u": [1051.0]},
    )

    target = lag_sticky(lagging)

    validity.check(lagging, target)
    assert time_s(lagging, lag_sticky(lagging, max_moves=0)) > 139
    assert time_s(lagging, target) < 60
