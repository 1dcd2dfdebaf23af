import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.lag.age import LagAge, lag_age
from pipeline.lag.lag import lag
from pipeline.lag.samples import append
from tests.property.pipeline.lag import oracles
from tests.support.job.measures import Sample, ints, rings

maybe_offsets = st.none() | st.integers(0, 30)
times = st.integers(0, 40_000)
MOST_GAP_MS = 5_000


@st.composite
def ring(draw: st.DrawFn) -> list[Sample]:
    at = sorted(draw(st.sets(st.integers(1, 30_000), max_size=16)))
    ends = sorted(draw(st.lists(st.integers(0, 25), min_size=len(at), max_size=len(at))))
    return list(zip(at, ends, strict=True))


def age(
    samples: list[Sample], committed: int | None, log_start: int | None, log_end: int | None, now_ms: int
) -> LagAge:
    offsets = {"committed": ints([committed]), "log_start": ints([log_start])}
    records = lag(**offsets, log_end=ints([log_end]))
    return lag_age(rings(samples), **offsets, lag=records, now_ms=now_ms, most_gap_ms=MOST_GAP_MS)


@given(ring(), maybe_offsets, maybe_offsets, maybe_offsets, times)
@settings(deadline=None, max_examples=200)
def test_age_equals_the_plain_rule(
    samples: list[Sample], committed: int | None, log_start: int | None, log_end: int | None, now_ms: int
) -> None:
    actual = age(samples, committed, log_start, log_end, now_ms)

    records = oracles.lag(committed, log_start, log_end)
    offset = max(committed or 0, log_start or 0)
    passage, gap = oracles.passed_at(samples, offset), oracles.unwatched(samples, offset, now_ms)
    if records == 0:
        assert (actual.seconds[0], actual.is_lower_bound[0]) == (0, False)
    elif records is None or passage is None:
        assert math.isnan(actual.seconds[0])
        assert not actual.is_lower_bound[0]
    else:
        is_vague = gap is not None and gap[1] - gap[0] > MOST_GAP_MS
        since_ms = gap[1] if gap is not None and is_vague else passage[0]
        assert actual.seconds[0] == pytest.approx(max(0.0, float(now_ms - since_ms) / 1000), abs=0.0011)
        assert actual.is_lower_bound[0] == (passage[1] or is_vague)


@given(ring(), st.integers(0, 30), st.integers(0, 30), times, times)
@settings(deadline=None)
def test_age_grows_with_the_clock_and_is_never_negative(
    samples: list[Sample], committed: int, log_end: int, now_ms: int, later_ms: int
) -> None:
    first, second = sorted((now_ms, later_ms))

    before = age(samples, committed, 0, log_end, first).seconds[0]
    then = age(samples, committed, 0, log_end, second).seconds[0]

    assert math.isnan(before) == math.isnan(then)
    assert math.isnan(before) or 0 <= before <= then


@given(ring(), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), times)
@settings(deadline=None)
def test_who_is_further_behind_waits_no_shorter(
    samples: list[Sample], committed: int, further: int, log_end: int, now_ms: int
) -> None:
    behind, ahead = sorted((committed, further))

    of_behind = age(samples, behind, 0, log_end, now_ms).seconds[0]
    of_ahead = age(samples, ahead, 0, log_end, now_ms).seconds[0]

    assert math.isnan(of_behind) or of_ahead <= of_behind


@given(st.lists(st.sampled_from([0, 0, 0, 1, 5, 1000]), min_size=20, max_size=120), st.data())
@settings(deadline=None, max_examples=50)
def test_no_record_has_waited_longer_than_the_bound_however_many_samples_were_dropped(
    arrivals: list[int], data: st.DataObject
) -> None:
    """All records of a tick arrive just after the sample before it."""
    ends = np.cumsum([100, *arrivals, 1])
    samples = rings([])
    for tick, end in enumerate(ends.tolist()):
        samples = append(samples, ints([tick * 30_000]), ints([end]))
    committed, now_ms = data.draw(st.integers(100, int(ends[-1]) - 1)), 30_000 * (len(ends) - 1)
    arrived_ms = 30_000 * (int(np.searchsorted(ends, committed, side="right")) - 1)

    lags = ints([int(ends[-1]) - committed])
    found = lag_age(
        samples,
        committed=ints([committed]),
        log_start=ints([0]),
        lag=lags,
        now_ms=now_ms,
        most_gap_ms=MOST_GAP_MS,
    )

    assert found.most_seconds[0] >= max(found.seconds[0], (now_ms - arrived_ms) / 1000)
