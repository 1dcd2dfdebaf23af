import numpy as np

from assignor.evaluation.drain.shares import water_filling


def test_water_filling_raises_the_lowest_loads_to_one_level() -> None:
    added = water_filling(np.array([0.0, 4.0, 9.0]), np.ones(3), 6.0)

    assert added.tolist() == [5.0, 1.0, 0.0]


def test_water_filling_gives_a_fast_member_more() -> None:
    added = water_filling(np.zeros(2), np.array([3.0, 1.0]), 8.0)

    assert added.tolist() == [6.0, 2.0]
