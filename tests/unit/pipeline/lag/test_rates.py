from collections.abc import Callable

import numpy as np
import pytest

from assignor.model.arrays import Floats, Int64s
from pipeline.lag.rates import arrival_rate, drain_rate
from tests.support.job.measures import ints

Rate = Callable[[Floats, Int64s, Int64s, int], Floats]

both = pytest.mark.parametrize("rate", [arrival_rate, drain_rate])


def one(rate: Rate, previous: float, delta_records: int | None, delta_ms: int | None) -> float:
    return float(rate(np.array([previous]), ints([delta_records]), ints([delta_ms]), 60_000)[0])


@both
def test_rate_before_two_observations_is_unknown(rate: Rate) -> None:
    assert np.isnan(one(rate, np.nan, None, None))


@both
def test_first_known_rate_is_the_raw_one(rate: Rate) -> None:
    assert one(rate, np.nan, 300, 30_000) == 10.0


@both
def test_half_life_moves_the_rate_half_way(rate: Rate) -> None:
    assert one(rate, 10.0, 0, 60_000) == pytest.approx(5.0)


@both
def test_two_short_steps_weigh_as_one_long_step(rate: Rate) -> None:
    in_steps = one(rate, one(rate, 10.0, 40, 20_000), 20, 10_000)

    assert in_steps == pytest.approx(one(rate, 10.0, 60, 30_000))


@both
@pytest.mark.parametrize("delta_ms", [0, -5000, None])
def test_time_that_did_not_advance_leaves_the_rate(rate: Rate, delta_ms: int | None) -> None:
    assert one(rate, 10.0, 300, delta_ms) == 10.0


@both
def test_unknown_growth_leaves_the_rate(rate: Rate) -> None:
    assert one(rate, 10.0, None, 30_000) == 10.0


def test_fallen_log_end_makes_the_arrival_rate_unknown() -> None:
    assert np.isnan(one(arrival_rate, 10.0, -1, 30_000))


def test_rewound_commit_leaves_the_drain_rate() -> None:
    assert one(drain_rate, 10.0, -1, 30_000) == 10.0


def test_partition_that_was_drained_once_is_told_from_one_that_never_was() -> None:
    standing_ms = 90 * 86_400_000

    assert one(drain_rate, 10.0, 0, standing_ms) > 0
    assert one(drain_rate, 0.0, 0, standing_ms) == 0
