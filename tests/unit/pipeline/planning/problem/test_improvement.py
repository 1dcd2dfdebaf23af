"""How much better a target is than what is."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.planning.problem.improvement import gain
from tests.support.assignors.groups import group, member

NOBODY_DRAINS_T0 = group(
    {"t": 5},
    member("a", "t", owned={"t": (0, 1)}, capacity=10.0),
    member("b", "t", owned={"t": (2, 3)}, capacity=10.0),
    member("c", "t", owned={"t": (4,)}, capacity=10.0),
    lags={"t": [5_000, 20, 6_000, 6_000, 0]},
    rates={"t": [15.0, 0.2, 0.0, 0.0, 0.0]},
)


@pytest.mark.parametrize("also_moved", [(), (1,)], ids=["b gives", "so does a, which never drains"])
def test_what_leaves_a_member_that_never_drains_does_not_hide_what_the_others_gain(
    also_moved: tuple[int, ...],
) -> None:
    before = NOBODY_DRAINS_T0.owner
    after = before.copy()
    after[[3, *also_moved]] = 2

    assert gain(NOBODY_DRAINS_T0, before, after) == pytest.approx(0.5, abs=0.01)


def test_member_that_never_drains_is_better_off_the_less_it_lacks() -> None:
    before = np.array([0, 0, 1, 1, 2])
    after = np.array([0, 2, 1, 1, 2])

    assert 0 < gain(NOBODY_DRAINS_T0, before, after) < 0.05


TWO_NEVER_DRAIN = group(
    {"t": 6},
    member("a", "t", owned={"t": (0, 1)}, capacity=10.0),
    member("b", "t", owned={"t": (2, 3, 4)}, capacity=10.0),
    member("c", "t", owned={"t": (5,)}, capacity=10.0),
    lags={"t": [5_000, 20, 90, 90, 90, 90]},
    rates={"t": [200.0, 0.2, 4.0, 4.0, 4.0, 1.0]},
)
"""Nobody drains t-0; b receives 12 records/s, and drains once it gives one of its partitions to c."""


def test_hopeless_partition_does_not_hide_that_another_member_drains() -> None:
    after = np.array([0, 0, 1, 1, 2, 2])

    assert gain(TWO_NEVER_DRAIN, TWO_NEVER_DRAIN.owner, after) > 0.9


@pytest.mark.parametrize(
    "after",
    [[0, 0, 1, 2, 2, 2], [2, 0, 1, 1, 1, 2], [0, 0, 1, 1, 0, 2]],
    ids=["c gets almost all", "c gets the hopeless one", "a gets more beside the hopeless one"],
)
def test_who_drains_now_and_never_does_then_is_harm_whatever_others_gain(after: list[int]) -> None:
    group_of_three = replace(TWO_NEVER_DRAIN, rate=np.array([200.0, 0.2, 4.0, 4.0, 4.0, 2.5]))

    assert gain(group_of_three, group_of_three.owner, np.array(after)) < 0
