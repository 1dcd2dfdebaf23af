import numpy as np

from pipeline.planning.problem.fixed import pinned
from tests.support.groups import group, member


def test_pin_holds_nothing_that_nobody_owns() -> None:
    built = group({"t": 2}, member("A", "t", owned={"t": (0,)}))

    assert pinned(built, ("t",), {}).tolist() == [True, False]
    np.testing.assert_array_equal(pinned(built, (), {"t": ()}), pinned(built, ("t",), {}))
