"""The trend of many partitions at once is that of each by the plain rule."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lag.trend import NO_TREND, TREND_NAMES, LagNow, Trend, TrendPace, trend_of
from tests.support.job.measures import ints, plain

PACE = TrendPace(least_ms=20_000, most_ms=60_000)
ALLOWED = 2
State = tuple[str | None, int | None, int | None]

steps = st.lists(
    st.tuples(
        st.none() | st.integers(0, 20) | st.integers(0, 2**50),
        st.none() | st.floats(0, 100),
        st.booleans() | st.just(value=True),
        st.booleans() | st.just(value=True),
        st.integers(1, 40_000) | st.integers(-30_000, 200_000),
    ),
    max_size=15,
)


def by_hand(before: State, lag: int | None, traffic: float | None, *, fresh: bool, now: int) -> State:
    """The next state of one partition whose lag is comparable, or None."""
    word, then, at = before
    if lag is None:
        return None, None, None
    if at is not None and then is not None and 0 <= now - at < 2 * PACE.most_ms:
        if not fresh:
            return None, then, at
        if now - at >= PACE.least_ms:
            tolerated = max(0.02 * then, PACE.traffic_s * (traffic or 0.0), ALLOWED)
            new = "growing" if lag - then > tolerated else "falling" if then - lag > tolerated else "steady"
            is_small = lag <= tolerated and then <= tolerated
            if new != "steady" or word is None or is_small or now - at >= PACE.most_ms:
                word = new
        return (word, lag, now) if now - at >= PACE.most_ms else (word, then, at)
    return (None, lag, now) if fresh else (None, None, None)


@given(partitions=st.lists(steps, min_size=1, max_size=4))
def test_trend_is_that_of_the_plain_rule(
    partitions: list[list[tuple[int | None, float | None, bool, bool, int]]],
) -> None:
    n = min(map(len, partitions))
    states: list[State] = [(None, None, None)] * len(partitions)
    trend = Trend(
        code=np.full(len(partitions), NO_TREND, np.int8),
        lag=ints([None] * len(partitions)),
        at_ms=ints([None] * len(partitions)),
    )
    now = 1_000_000
    for step in range(n):
        lags, traffic, comparable, fresh, _ = zip(*(steps[step] for steps in partitions), strict=True)
        now += partitions[0][step][4]
        trend = trend_of(
            trend,
            LagNow(
                lag=ints(lags),
                traffic=np.array([np.nan if rate is None else rate for rate in traffic]),
                is_comparable=np.array(comparable),
                is_fresh=np.array(fresh),
            ),
            now_ms=now,
            pace=PACE,
            allowed_lag=ALLOWED,
        )
        states = [
            by_hand(state, lag if ok else None, rate, fresh=new, now=now)
            for state, lag, rate, ok, new in zip(states, lags, traffic, comparable, fresh, strict=True)
        ]
        words = [None if code == NO_TREND else TREND_NAMES[code] for code in trend.code]
        assert list(zip(words, plain(trend.lag), plain(trend.at_ms), strict=True)) == states
