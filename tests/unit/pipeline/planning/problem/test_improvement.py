"""How much better a target is than what is."""

import numpy as np
import pytest

from pipeline.planning.problem.improvement import gain
from tests.support.groups import group, member

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
