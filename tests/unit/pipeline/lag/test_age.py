import numpy as np
import pytest

from pipeline.lag.age import LagAge, lag_age
from pipeline.lag.lag import lag
from tests.support.job.measures import Sample, ints, rings

RING = [(10_000, 100), (20_000, 100), (30_000, 200), (40_000, 400)]
MOST_GAP_MS = 20_000


def age(
    ring: list[Sample],
    committed: int | None,
    log_end: int | None,
    *,
    log_start: int | None = 0,
    now_ms: int = 41_000,
) -> LagAge:
    offsets = {"committed": ints([committed]), "log_start": ints([log_start])}
    records = lag(**offsets, log_end=ints([log_end]))
    return lag_age(rings(ring), **offsets, lag=records, now_ms=now_ms, most_gap_ms=MOST_GAP_MS)


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


@pytest.mark.parametrize(("committed", "expected_s"), [(400, 1.0), (500, 1.0), (399, 3_601.05)])
def test_record_that_came_while_nobody_asked_has_waited_since_the_next_sample_or_longer(
    committed: int, expected_s: float
) -> None:
    back_ms = 40_000 + 3_600_000

    actual = age([*RING, (back_ms, 600)], committed, 600, now_ms=back_ms + 1_000)

    assert actual.seconds.tolist() == [expected_s]
    assert actual.is_lower_bound.tolist() == [committed >= 400]
    assert actual.most_seconds.tolist() == [3_601.0 if committed >= 400 else 3_611.0]


def test_samples_of_two_triggers_have_a_line_between_them_however_new_they_are() -> None:
    actual = age([*RING, (40_000 + MOST_GAP_MS, 600)], 500, 600, now_ms=60_000)

    assert (actual.seconds.tolist(), actual.is_lower_bound.tolist()) == ([10.0], [False])


def test_gap_that_thinning_may_have_left_has_a_line_across_it() -> None:
    old = [(0, 100), (600_000, 200), (800_000, 300)]

    actual = age(old, 150, 300, now_ms=800_000)

    assert (actual.seconds.tolist(), actual.is_lower_bound.tolist()) == ([500.0], [False])


def test_gap_counts_for_less_as_time_passes() -> None:
    back_ms = 40_000 + 100_000
    ring = [*RING, (back_ms, 600)]

    then = [age(ring, 500, 600, now_ms=back_ms + after_s * 1_000) for after_s in (24, 25)]

    assert [one.seconds.tolist() for one in then] == [[24.0], [75.0]]
    assert [one.is_lower_bound.tolist() for one in then] == [[True], [False]]
