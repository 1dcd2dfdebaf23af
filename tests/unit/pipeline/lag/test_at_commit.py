"""Lag at the newest commit, and the pace of commits."""

import numpy as np
import pytest

from assignor.model.arrays import Int64s
from pipeline.lag import samples
from pipeline.lag.commits import window as commit_window
from pipeline.lag.commits.at_commit import CLOCK_ERROR_MS, lag_at_commit, log_end_at
from pipeline.lag.commits.pace import CommitPace, commit_pace
from pipeline.lag.lag import UNKNOWN
from tests.support.job.measures import no_commits, no_samples

MOST_GAP_MS = 150_000


def _array(*values: int) -> Int64s:
    return np.array(values, np.int64)


def _ring(*seen: tuple[int, int]) -> samples.Samples:
    ring = no_samples(1)
    for at_ms, end in seen:
        ring = samples.append(ring, _array(at_ms), _array(end))
    return ring


def _end_at(ring: samples.Samples, at_ms: int) -> int:
    return int(log_end_at(ring, _array(at_ms), most_gap_ms=MOST_GAP_MS)[0])


def _at_commit(
    ring: samples.Samples,
    *,
    committed: int,
    commit_ms: int,
    end: int,
    start: int = 0,
    readable: int = UNKNOWN,
) -> int:
    found = lag_at_commit(
        ring,
        committed=_array(committed),
        commit_ms=_array(commit_ms),
        log_start=_array(start),
        log_end=_array(end),
        readable=_array(readable),
        last_stable=_array(UNKNOWN),
        most_gap_ms=MOST_GAP_MS,
    )
    return int(found[0])


def _pace(*commits: tuple[int, int, int]) -> CommitPace:
    """Of commits as (s, offset, lag at the commit)."""
    window = no_commits(1)
    for at_s, offset, lag in commits:
        window = commit_window.append_commit(
            window,
            committed=_array(offset),
            commit_timestamp_ms=_array(at_s * 1000),
            lag=_array(lag),
            is_new=np.ones(1, np.bool_),
        )
    return commit_pace(window)


def test_a_group_that_keeps_up_is_not_behind_at_its_commit_however_old_that_is() -> None:
    ring = _ring((0, 0), (30_000, 3_000), (60_000, 6_000))
    assert _at_commit(ring, committed=1_000, commit_ms=10_000, end=6_000) == 0
    assert _at_commit(ring, committed=400, commit_ms=10_000, end=6_000) == 600


def test_what_a_transaction_held_back_is_no_lag_at_a_commit() -> None:
    ring = _ring((0, 0), (30_000, 3_000), (60_000, 6_000))
    # Read as far as it may be, and half as far.
    assert _at_commit(ring, committed=2_000, commit_ms=40_000, end=6_000, readable=2_000) == 0
    assert _at_commit(ring, committed=1_000, commit_ms=40_000, end=6_000, readable=2_000) == 1_000


def test_group_that_commits_beyond_what_is_stable_is_at_its_end() -> None:
    ring = _ring((0, 0), (30_000, 3_000), (60_000, 6_000))
    assert _at_commit(ring, committed=3_500, commit_ms=40_000, end=6_000, readable=2_000) == 0


def test_where_the_lag_at_a_commit_is_unknown_a_transaction_makes_it_no_better() -> None:
    ring = _ring((30_000, 3_000), (60_000, 6_000))
    assert _at_commit(ring, committed=1_000, commit_ms=10_000, end=6_000, readable=2_000) == UNKNOWN


def test_lag_at_a_commit_is_never_more_than_the_lag_now() -> None:
    ring = _ring((0, 0), (30_000, 3_000))
    assert _at_commit(ring, committed=2_990, commit_ms=30_000 + CLOCK_ERROR_MS, end=2_995) == 5


def test_records_that_are_deleted_are_no_lag_at_a_commit() -> None:
    assert (
        _at_commit(_ring((0, 0), (10_000, 1_000)), committed=0, commit_ms=10_000, end=1_000, start=900) == 100
    )


@pytest.mark.parametrize(
    ("commit_ms", "end"),
    [(9_999, 2_000), (30_001 + CLOCK_ERROR_MS, 2_000), (UNKNOWN, 2_000), (20_000, UNKNOWN)],
)
def test_without_a_bracket_the_lag_at_a_commit_is_unknown(commit_ms: int, end: int) -> None:
    ring = _ring((10_000, 1_000), (30_000, 2_000))
    assert _at_commit(ring, committed=500, commit_ms=commit_ms, end=end) == UNKNOWN


def test_a_group_without_lag_had_none_at_its_commit_and_an_empty_ring_tells_nothing_else() -> None:
    assert _at_commit(no_samples(1), committed=5, commit_ms=0, end=5) == 0
    assert _at_commit(no_samples(1), committed=4, commit_ms=0, end=5) == UNKNOWN


def test_a_commit_stamped_long_before_its_records_came_in_tells_nothing() -> None:
    ring = _ring((0, 0), (30_000, 3_000), (60_000, 6_000), (90_000, 9_000))
    assert _at_commit(ring, committed=8_000, commit_ms=10_000, end=9_000) == UNKNOWN
    assert _at_commit(ring, committed=3_000, commit_ms=29_000, end=9_000) == 0


def test_a_commit_beyond_the_log_end_tells_nothing() -> None:
    assert _at_commit(_ring((0, 0), (10_000, 1_000)), committed=2_000, commit_ms=9_000, end=1_000) == UNKNOWN


def test_a_full_ring_serves_like_any_other() -> None:
    ring = _ring(*((1_000 * i, 10 * i) for i in range(samples.RING_SIZE)))
    last_ms = 1_000 * (samples.RING_SIZE - 1)
    assert _at_commit(ring, committed=5, commit_ms=last_ms, end=400) == 10 * (samples.RING_SIZE - 1) - 5


def test_the_log_end_of_a_time_is_on_the_line_between_its_neighbours() -> None:
    ring = _ring((10_000, 1_000), (30_000, 2_000), (40_000, 2_000))
    ends = [_end_at(ring, at_ms) for at_ms in (10_000, 15_000, 30_000, 35_000, 40_000)]
    assert ends == [1_000, 1_250, 2_000, 2_000, 2_000]


def test_no_line_says_where_the_log_end_was_while_nobody_asked_unless_it_stayed() -> None:
    ring = _ring((0, 1_000), (MOST_GAP_MS + 1, 2_000), (3 * MOST_GAP_MS, 2_000))

    assert [_end_at(ring, at_ms) for at_ms in (0, 20_000, MOST_GAP_MS + 1, 2 * MOST_GAP_MS)] == [
        *(UNKNOWN, UNKNOWN, 2_000, 2_000)
    ]
    assert _at_commit(ring, committed=1_000, commit_ms=20_000, end=2_000) == UNKNOWN


def test_pace_is_what_was_read_between_two_commits_that_are_far_enough_apart() -> None:
    pace = _pace((0, 0, 50), (30, 3_000, 40), (45, 4_500, 30), (55, 5_000, 60))
    assert (pace.rate[0], pace.span_s[0], pace.least_lag[0]) == (80.0, 25.0, 30)


def test_pace_of_commits_that_stand_still_is_zero() -> None:
    assert _pace((0, 7, 50), (30, 7, 60)).rate[0] == 0.0


@pytest.mark.parametrize(
    "commits",
    [((0, 0, 0),), ((0, 0, 0), (19, 9, 0)), ((0, 5, 0), (30, 2, 0)), ((0, 9, 0), (30, 2, 0), (31, 20, 0))],
)
def test_pace_is_unknown_without_an_earlier_commit_and_after_a_step_back(
    commits: tuple[tuple[int, int, int], ...],
) -> None:
    pace = _pace(*commits)
    assert np.isnan(pace.rate[0])
    assert np.isnan(pace.span_s[0])
    assert pace.least_lag[0] == UNKNOWN


def test_one_unknown_lag_makes_the_least_lag_unknown() -> None:
    assert _pace((0, 0, 50), (30, 9, UNKNOWN)).least_lag[0] == UNKNOWN


def test_the_usual_interval_bears_one_gap_in_four_and_takes_four_commits() -> None:
    assert np.isnan(_pace((0, 0, 0), (30, 1, 0), (60, 2, 0)).interval_s[0])
    assert _pace((0, 0, 0), (30, 1, 0), (60, 2, 0), (90, 3, 0)).interval_s[0] == 30.0
    assert _pace((0, 0, 0), (30, 1, 0), (60, 2, 0), (90, 3, 0), (390, 4, 0)).interval_s[0] == 30.0
