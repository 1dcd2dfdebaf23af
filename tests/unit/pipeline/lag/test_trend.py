"""Whether lag grows, falls or stays, and when nothing can be said."""

import numpy as np
import pytest

from pipeline.lag.lag import UNKNOWN
from pipeline.lag.trend import NO_TREND, TREND_NAMES, LagNow, Trend, TrendPace, trend_of
from tests.support.job.measures import ints, plain

PACE = TrendPace(least_ms=120_000, most_ms=360_000)
TICK_MS = 30_000
NONE = Trend(code=np.full(1, NO_TREND, np.int8), lag=ints([None]), at_ms=ints([None]))


class Partition:
    """One partition, batch by batch."""

    def __init__(self, *, traffic: float | None = 0.0, allowed_lag: int = 0) -> None:
        self.now_ms = 1_700_000_000_000
        self.trend = NONE
        self._traffic, self._allowed_lag = traffic, allowed_lag

    def sees(
        self, lag: int | None, *, after_ms: int = TICK_MS, is_comparable: bool = True, is_fresh: bool = True
    ) -> str | None:
        """The word after a batch with this lag."""
        self.now_ms += after_ms
        now = LagNow(
            lag=ints([lag]),
            traffic=np.array([np.nan if self._traffic is None else self._traffic]),
            is_comparable=np.array([is_comparable]),
            is_fresh=np.array([is_fresh]),
        )
        self.trend = trend_of(self.trend, now, now_ms=self.now_ms, pace=PACE, allowed_lag=self._allowed_lag)
        return None if self.trend.code[0] == NO_TREND else TREND_NAMES[self.trend.code[0]]

    def sees_all(self, *lags: int | None) -> list[str | None]:
        return [self.sees(lag) for lag in lags]


def test_nothing_is_said_before_two_minutes_have_passed() -> None:
    assert Partition().sees_all(0, 50, 100, 150, 200) == [None, None, None, None, "growing"]


@pytest.mark.parametrize(
    ("lags", "word"),
    [([1000, 5000], "growing"), ([5000, 1000], "falling"), ([1000, 1020], "steady"), ([0, 0], "steady")],
)
def test_word_says_how_lag_differs_from_that_of_some_minutes_ago(lags: list[int], word: str) -> None:
    first, last = lags

    assert Partition().sees_all(first, first, first, first, last)[-1] == word


def test_what_comes_and_goes_between_two_commits_is_steady() -> None:
    partition = Partition(traffic=100.0)

    words = partition.sees_all(*(5 if number % 2 else 990 for number in range(40)))

    assert set(words) == {None, "steady"}


def test_lag_that_counts_as_caught_up_and_one_record_are_steady() -> None:
    assert Partition(allowed_lag=5).sees_all(0, 0, 0, 0, 5, 0)[-2:] == ["steady", "steady"]
    assert Partition(traffic=None).sees_all(0, 0, 0, 0, 1, 2)[-2:] == ["steady", "growing"]


def test_slow_growth_is_seen_as_it_adds_up() -> None:
    partition = Partition(traffic=10.0)

    words = partition.sees_all(*range(0, 1500, 15))

    assert "growing" in words
    assert words[words.index("growing") :] == ["growing"] * (len(words) - words.index("growing"))


def test_group_that_has_drained_is_steady_after_a_while() -> None:
    partition = Partition()
    assert partition.sees_all(*range(100_000, 0, -10_000))[-1] == "falling"

    words = partition.sees_all(*[0] * 24)

    assert words[-1] == "steady"


def test_unknown_lag_says_nothing_and_what_follows_begins_anew() -> None:
    partition = Partition()
    partition.sees_all(0, 0, 0, 0, 100)

    assert partition.sees(None) is None
    assert plain(partition.trend.lag) == plain(partition.trend.at_ms) == [None]
    assert partition.sees_all(100, 100, 100, 100, 100) == [None, None, None, None, "steady"]


def test_lag_that_cannot_be_compared_begins_anew() -> None:
    partition = Partition()
    partition.sees_all(0, 0, 0, 0, 0)

    assert partition.sees(9_000, is_comparable=False) is None
    assert partition.sees_all(9_000, 9_000, 9_000, 9_000, 9_000)[-1] == "steady"


def test_old_log_end_says_nothing_and_the_trend_goes_on_with_the_next_answer() -> None:
    partition = Partition()
    partition.sees_all(0, 50, 100, 150, 200)

    assert partition.sees(200, is_fresh=False) is None
    assert partition.sees(300) == "growing"


@pytest.mark.parametrize("gap_ms", [3_600_000, -3_600_000])
def test_after_a_long_silence_or_a_clock_gone_back_nothing_is_said_of_the_last_minutes(gap_ms: int) -> None:
    partition = Partition()
    partition.sees_all(0, 0, 0, 0, 0)

    assert partition.sees(5_000, after_ms=gap_ms) is None
    assert plain(partition.trend.lag) == [5_000]
    assert partition.sees_all(5_000, 5_000, 5_000, 5_000)[-1] == "steady"


def test_reference_is_never_older_than_two_windows() -> None:
    partition = Partition()
    for lag in range(200):
        partition.sees(lag)
        assert partition.trend.lag[0] != UNKNOWN
        assert partition.now_ms - partition.trend.at_ms[0] < 2 * PACE.most_ms


def test_stopped_consumer_is_seen_however_short_the_window_is() -> None:
    assert TrendPace(least_ms=120_000, most_ms=360_000).traffic_s == 10
    assert TrendPace(least_ms=2_000, most_ms=6_000).traffic_s == 1
