import math

import numpy as np
import pytest

from assignor.evaluation.drain.bound import BoundCause, group_bound, lower_bound_s
from assignor.evaluation.drain.time import drain_s, lag_imbalance, member_drain_s
from tests.support.assignors.drain_groups import owned
from tests.support.assignors.groups import group, member


def test_member_has_drained_after_lag_over_spare_capacity() -> None:
    built = group(
        {"t": 3},
        member("a", "t", capacity=100.0),
        member("b", "t", capacity=50.0),
        lags={"t": [600, 300, 400]},
        rates={"t": [10.0, 0.0, 10.0]},
    )

    times = member_drain_s(built, np.array([0, 0, 1], np.int32))

    assert times is not None
    assert times.tolist() == [10.0, 10.0]


@pytest.mark.parametrize(
    ("lag", "rate", "time_s"),
    [(0, 0.0, 0.0), (0, 10.0, 0.0), (1, 10.0, math.inf), (0, 11.0, math.inf), (5, 5.0, 1.0)],
    ids=["idle", "just enough", "never catches up", "falls behind", "drains"],
)
def test_time_of_one_member_with_capacity_ten(lag: int, rate: float, time_s: float) -> None:
    built = group({"t": 1}, member("a", "t", capacity=10.0), lags={"t": [lag]}, rates={"t": [rate]})

    assert drain_s(built, np.zeros(1, np.int32)) == time_s
    assert lower_bound_s(built) == time_s


def test_times_are_unknown_without_capacities() -> None:
    built = group({"t": 1}, member("a", "t"), lags={"t": [5]})

    assert drain_s(built, np.zeros(1, np.int32)) is None
    assert lower_bound_s(built) is None


def test_lagging_partition_that_nobody_holds_is_never_drained() -> None:
    built = group({"t": 2}, member("a", "t", capacity=10.0), lags={"t": [5, 0]})

    assert drain_s(built, np.array([-1, 0], np.int32)) == math.inf
    assert drain_s(built, np.array([0, -1], np.int32)) == 0.5


def test_topic_that_nobody_reads_is_not_the_work_of_the_group() -> None:
    built = group({"t": 1, "u": 1}, member("a", "t", capacity=10.0), lags={"t": [10], "u": [1000]})

    assert drain_s(built, np.array([0, -1], np.int32)) == 1.0
    assert lower_bound_s(built) == 1.0


def test_group_that_reads_nothing_is_drained() -> None:
    built = group({"t": 1}, member("a", capacity=10.0), lags={"t": [5]})

    assert lower_bound_s(built) == 0.0
    assert lag_imbalance(built, np.full(1, -1, np.int32)) == 0.0


BOUNDS = {
    "one partition on its fastest subscriber": (
        [("a", "t", 10.0), ("b", "t", 5.0), ("c", "u", 1000.0)],
        {"t": [100], "u": [1]},
        10.0,
    ),
    "one subscriber set": (
        [("a", "t", 10.0), ("b", "t", 10.0), ("c", "u", 10.0)],
        {"t": [30] * 6, "u": [0]},
        9.0,
    ),
    "two largest on the two fastest": (
        [("a", "t", 30.0), ("b", "t", 10.0), ("c", "t", 10.0)],
        {"t": [200, 200] + [0] * 11},
        10.0,
    ),
    "all that a small group can do": (
        [("a", "t", 30.0), ("b", "t", 10.0), ("c", "t", 10.0)],
        {"t": [200, 200, 0, 0]},
        40 / 3,
    ),
    "all work over all capacity that may take part": (
        [("a", "t", 10.0), ("b", "tu", 10.0), ("c", "u", 10.0), ("idle", "-", 1000.0)],
        {"t": [10] * 12, "u": [10] * 12, "-": []},
        8.0,
    ),
    "two of three partitions on one of two members": (
        [("a", "t", 10.0), ("b", "t", 10.0)],
        {"t": [30, 30, 30]},
        6.0,
    ),
    "three of seven partitions on one of three members": (
        [("a", "t", 10.0), ("b", "t", 10.0), ("c", "t", 10.0)],
        {"t": [40, 30, 30, 30, 30, 30, 30]},
        9.0,
    ),
    "a fast member takes two where slow ones take one": (
        [("a", "t", 20.0), ("b", "t", 10.0), ("c", "t", 10.0)],
        {"t": [30, 30, 30, 30, 30]},
        4.5,
    ),
    "two subscriber sets that share their members": (
        [("a", "tu", 10.0), ("b", "tv", 10.0), ("c", "vw", 10.0)],
        {"t": [10] * 7, "u": [10] * 5, "v": [0], "w": [0]},
        6.0,
    ),
}


@pytest.mark.parametrize(("members", "lags", "bound_s"), BOUNDS.values(), ids=list(BOUNDS))
def test_bound_is_the_largest_of_its_parts(
    members: list[tuple[str, str, float]], lags: dict[str, list[int]], bound_s: float
) -> None:
    built = group(
        {topic: len(lag) for topic, lag in lags.items()},
        *(member(name, *topics, capacity=capacity) for name, topics, capacity in members),
        lags=lags,
    )

    assert lower_bound_s(built) == pytest.approx(bound_s)


@pytest.mark.parametrize(
    ("lags", "cause"),
    [
        ([[90], [0]], BoundCause.PARTITION),
        ([[10] * 4, [0]], BoundCause.SHARES),
        ([[10] * 3, [0]], BoundCause.BIN_PACKING),
        ([[60, 50, 30, 30], [0]], BoundCause.ALL_TRIED),
    ],
    ids=["one partition", "all work", "three partitions for two members", "all tried"],
)
def test_bound_says_what_gives_it(lags: list[list[int]], cause: BoundCause) -> None:
    bound = group_bound(owned(*lags))

    assert bound is not None
    assert bound.cause is cause
    assert (bound.partition == 0) == (cause is BoundCause.PARTITION)


def test_bound_counts_what_arrives_until_then() -> None:
    """Two of the three lie on one member: 2 * (10 + 2 T) <= 10 T holds from T = 10 / 3 on."""
    built = owned([10, 10, 10], [], rates=[[2.0, 2.0, 2.0], []])

    assert lower_bound_s(built) == pytest.approx(20 / 6)


def test_bound_is_never_when_arrivals_cannot_be_shared_out() -> None:
    built = owned([0, 0, 0], [], rates=[[6.0, 6.0, 6.0], []])

    bound = group_bound(built)

    assert bound is not None
    assert (bound.time_s, bound.cause) == (math.inf, BoundCause.BIN_PACKING)


def test_bound_of_many_subscriber_sets_is_that_of_the_narrowest_part() -> None:
    """Members 0 to 3 in a ring read topics 0 to 3 and the next one; only topics 0 and 1 lag."""
    members = [member(f"m{m}", f"t{m}", f"t{(m + 1) % 4}", capacity=10.0) for m in range(4)]
    lags = {"t0": [10] * 30, "t1": [10] * 30, "t2": [0], "t3": [0]}

    built = group({topic: len(lag) for topic, lag in lags.items()}, *members, lags=lags)

    assert lower_bound_s(built) == pytest.approx(600 / 30)


def test_bound_is_never_when_arrivals_exceed_capacity() -> None:
    built = group(
        {"t": 2}, member("a", "t", capacity=10.0), member("b", "t", capacity=10.0), rates={"t": [12.0, 9.0]}
    )

    assert lower_bound_s(built) == math.inf


@pytest.mark.parametrize(
    ("owner", "imbalance"),
    [([0, 1], 0.5), ([0, 0], 1.0), ([-1, -1], 0.0)],
    ids=["30 and 10", "all on one", "nobody"],
)
def test_imbalance_is_the_difference_over_the_total(owner: list[int], imbalance: float) -> None:
    built = group({"t": 2}, member("a", "t"), member("b", "t"), lags={"t": [30, 10]})

    assert lag_imbalance(built, np.array(owner, np.int32)) == imbalance


def test_member_that_reads_nothing_does_not_make_lag_uneven() -> None:
    built = group({"t": 1, "none": 0}, member("a", "t"), member("b", "none"), lags={"t": [10]})

    assert lag_imbalance(built, np.zeros(1, np.int32)) == 0.0
