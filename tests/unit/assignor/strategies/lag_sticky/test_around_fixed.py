"""The search goes on around members that cannot be helped, because what holds them up is fixed."""

from dataclasses import replace

import numpy as np

from assignor.evaluation.drain.time import member_drain_s
from assignor.evaluation.validity import check
from assignor.model.group import Group
from tests.support.assignors.drain_groups import FREE, lag_sticky, owned, remarks
from tests.support.assignors.groups import group, member


def fixing(lagging: Group, *members: int) -> Group:
    """The group with all that these members own fixed."""
    return replace(lagging, fixed=np.isin(lagging.owner, members))


def times(lagging: Group, **options: object) -> list[float]:
    """Drain time of each member under the answer, which is checked."""
    target = lag_sticky(lagging, **options)
    check(lagging, target)
    found = member_drain_s(lagging, target.member)
    assert found is not None
    return [round(seconds, 1) for seconds in found.tolist()]


def test_member_that_is_late_by_what_is_fixed_does_not_hide_the_others() -> None:
    lagging = fixing(owned([90_000], [400, 300, 300, 200], []), 0)

    assert times(lagging, **FREE) == [9000.0, 60.0, 60.0]


def test_two_dozen_such_members_do_not_end_the_search() -> None:
    late = [[9000 + m] for m in range(24)]
    lagging = owned(*late, [400, 300, 300, 200], [])
    lagging = replace(lagging, fixed=lagging.lag >= 9000)

    assert sorted(times(lagging, **FREE))[:2] == [60.0, 60.0]


def test_member_after_one_that_is_late_by_what_is_fixed_is_relieved_although_its_largest_partition_stays() -> (
    None
):
    lagging = fixing(owned([90_000], [900, 300, 300], [0], [0]), 0)

    assert sorted(times(lagging, **FREE)) == [30.0, 30.0, 90.0, 9000.0]


def test_late_member_gives_all_that_is_not_fixed() -> None:
    lagging = owned([9000, 500, 400], [100], [100])
    lagging = replace(lagging, fixed=lagging.lag == 9000)

    assert times(lagging, **FREE)[0] == 900.0


def test_member_that_joins_is_given_work_by_one_with_something_fixed() -> None:
    joined = owned([10, 10, 10], [], rates=[[1.0, 1.0, 1.0], []])
    joined = replace(joined, fixed=np.array([True, False, False]))

    target = lag_sticky(joined)

    check(joined, target)
    assert np.bincount(target.member).tolist() == [2, 1]


def test_member_with_something_fixed_gives_its_only_other_partition_to_one_that_joins() -> None:
    joined = owned([0, 0], [], rates=[[1.0, 1.0], []])
    joined = replace(joined, fixed=np.array([True, False]))

    target = lag_sticky(joined)

    check(joined, target)
    assert target.member.tolist() == [0, 1]


def test_closed_member_without_work_stays_without() -> None:
    lagging = replace(owned([10, 10, 10, 10], [], []), closed=np.array([False, True, False]))

    target = lag_sticky(lagging, **FREE)

    check(lagging, target)
    assert np.bincount(target.member, minlength=3).tolist() == [2, 0, 2]


def test_chain_does_not_end_at_a_closed_member() -> None:
    """Nine idle closed members would fill the few places that are tried for the end of a chain."""
    members = [
        member("a", "t", owned={"t": [0, 1]}, capacity=10.0),
        member("b", "t", "u", owned={"u": [0]}, capacity=10.0),
        member("z", "u", capacity=10.0),
        *(member(f"c{n}", "t", "u", capacity=10.0) for n in range(9)),
    ]
    lagging = group({"t": 2, "u": 1}, *members, lags={"t": [600, 500], "u": [550]})
    closed = np.array([member_id.startswith("c") for member_id in lagging.member_ids])

    assert max(times(replace(lagging, closed=closed), **FREE)) == 60.0


def test_reason_for_no_move_names_the_member_with_the_fixed_partitions() -> None:
    lagging = fixing(owned([9000, 10], [100], [100]), 0)

    assert "no move: no assignment is sooner, for the partitions fixed on member m0 take 15 min" in remarks(
        lagging
    )
