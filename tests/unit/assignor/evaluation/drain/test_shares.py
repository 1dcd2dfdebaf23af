import numpy as np
import pytest

from assignor.evaluation.drain import shares
from assignor.evaluation.drain.shares import water_filling


def test_water_filling_raises_the_lowest_loads_to_one_level() -> None:
    added = water_filling(np.array([0.0, 4.0, 9.0]), np.ones(3), 6.0)

    assert added.tolist() == [5.0, 1.0, 0.0]


def test_water_filling_gives_a_fast_member_more() -> None:
    added = water_filling(np.zeros(2), np.array([3.0, 1.0]), 8.0)

    assert added.tolist() == [6.0, 2.0]


def test_few_members_are_filled_to_the_last_bit_as_many_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    cases = [
        (rng.choice([0.0, 1.0, rng.random() * 1e6], n), rng.choice([1.0, 0.1, 3.7], n), rng.random() * 1e7)
        for n in rng.integers(1, 12, 200).tolist()
    ]

    one_by_one = [water_filling(*case).tolist() for case in cases]
    monkeypatch.setattr(shares, "_FEW_MEMBERS", 0)

    assert [water_filling(*case).tolist() for case in cases] == one_by_one
