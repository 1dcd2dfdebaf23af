import numpy as np
import pytest

from pipeline.lag.age import LagAge, lag_age
from pipeline.lag.lag import lag
from tests.support.job.measures import Sample, ints, rings

RING = [(10_000, 100), (20_000, 100), (30_000, 200), (40_000, 400)]


def age(
    ring: list[Sample],
    committed: int | None,
    log_end: int | None,
    *,
    log_start: int | None = 0,
    now_ms: int = 41_000,
) -> LagAge:
    offsets = {"committed": ints([committed]), "log_start": ints([log_start])}
    return lag_age(rings(ring), **offsets, lag=lag(**offsets, log_end=ints([log_end])), now_ms=now_ms)


@pytest.mark.parametrize(
    ("committed", "log_start", "expected_s"),
    [
        pytest.param(300, 0, 6.0, id="half way between two samples"),
        pytest.param(350, 0, 3.5, id="nearer to the newer sample"),
        pytest.param(200, 0, 11.0, id="on a sample"),
        pytest.param(100, 0, 21.0, id="after a quiet time: from its end on"),
        pytest.param(399, 0, 1.05, id="last record"),
        pytest.param(100, 300, 6.0, id="expired commit: age of the first record left"),
        pytest.param(300, None, 6.0, id="unknown log start"),
    ],
)
def test_age_is_the_time_since_the_log_end_passed(
    committed: int, log_start: int | None, expected_s: float
) -> None:
    actual = age(RING, committed, 400, log_start=log_start)

    assert actual.seconds.tolist() == [expected_s]
    assert actual.is_lower_bound.tolist() == [False]


@pytest.mark.parametrize(
    ("committed", "expected_s"), [(399, 11.0), (300, 11.0), (200, 11.0), (199, 21.0), (100, 21.0), (400, 0.0)]
)
def test_no_record_is_older_than_the_sample_before_it(committed: int, expected_s: float) -> None:
    assert age(RING, committed, 400).most_seconds.tolist() == [expected_s]


def test_lag_older_than_the_ring_is_a_lower_bound() -> None:
    actual = age(RING, 99, 400)

    assert actual.seconds.tolist() == [31.0]
    assert np.isnan(actual.most_seconds).tolist() == [True]
    assert actual.is_lower_bound.tolist() == [True]


@pytest.mark.parametrize(
    ("ring", "committed"),
    [
        pytest.param(RING, 400, id="ring"),
        pytest.param([], 400, id="empty ring"),
        pytest.param(RING, 9_999, id="beyond"),
    ],
)
def test_no_lag_has_age_0(ring: list[Sample], committed: int) -> None:
    actual = age(ring, committed, 400)

    assert actual.seconds.tolist() == [0.0]
    assert actual.is_lower_bound.tolist() == [False]


@pytest.mark.parametrize(
    ("ring", "committed", "log_end"),
    [
        pytest.param([], 100, 400, id="empty ring"),
        pytest.param(RING, None, 400, id="no commit"),
        pytest.param(RING, 300, None, id="unknown log end"),
    ],
)
def test_unknown_age_is_nan_and_no_bound(
    ring: list[Sample], committed: int | None, log_end: int | None
) -> None:
    actual = age(ring, committed, log_end)

    assert np.isnan(actual.seconds).tolist() == [True]
    assert actual.is_lower_bound.tolist() == [False]


def test_clock_gone_back_gives_age_0_not_a_negative_one() -> None:
    actual = age(RING, 300, 400, now_ms=15_000)

    assert actual.seconds.tolist() == [0.0]


def test_offset_not_passed_by_the_newest_sample_counts_from_it() -> None:
    actual = age(RING, 450, 500)

    assert actual.seconds.tolist() == [1.0]
