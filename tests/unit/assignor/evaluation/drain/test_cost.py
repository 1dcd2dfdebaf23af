import numpy as np
import pytest

from assignor.evaluation.drain.cost import CostModel

CAPACITY = np.array([10.0])


def one(value: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.array([value])


@pytest.mark.parametrize(
    ("lag", "rate", "finite_drain_s"),
    [
        (0.0, 0.0, 0.0),
        (100.0, 0.0, 10.0),
        (100.0, 5.0, 20.0),
        (0.0, 10.0, 0.0),
        (1000.0, 0.0, 100.0),
        (2000.0, 0.0, 200.0),
        (600.0, 5.0, 110.0),
        (0.0, 12.0, 120.0),
    ],
    ids=["nothing", "lag", "both", "full", "at the horizon", "beyond", "beyond with arrivals", "never"],
)
def test_time_beyond_the_horizon_is_that_of_the_work_come_in_by_then(
    lag: float, rate: float, finite_drain_s: float
) -> None:
    model = CostModel(horizon_s=100.0, floor_s=0.0)

    assert model.finite_drain_s(one(lag), one(rate), CAPACITY).tolist() == [pytest.approx(finite_drain_s)]


@pytest.mark.parametrize(
    ("rate", "load_s"), [(0.0, 2.0), (9.0, 20.0), (9.5, 40.0), (10.0, 48.0), (8.0, 10.0)]
)
def test_member_with_a_tenth_to_spare_is_at_the_floor(rate: float, load_s: float) -> None:
    model = CostModel(horizon_s=100.0, floor_s=20.0)

    assert model.load_s(one(0.0), one(rate), CAPACITY).tolist() == [pytest.approx(load_s)]


@pytest.mark.parametrize(
    ("lag", "rate", "lag_area"),
    [
        (0.0, 0.0, 0.0),
        (100.0, 0.0, 500.0),
        (100.0, 5.0, 1000.0),
        (0.0, 12.0, 10_000.0),
        (2000.0, 0.0, 150_000.0),
    ],
    ids=["nothing", "drained in 10 s", "drained in 20 s", "growing by 2 a second", "half drained"],
)
def test_area_is_lag_summed_until_drained_or_the_horizon(lag: float, rate: float, lag_area: float) -> None:
    model = CostModel(horizon_s=100.0, floor_s=0.0)

    assert model.lag_area(one(lag), one(rate), CAPACITY).tolist() == [pytest.approx(lag_area)]
