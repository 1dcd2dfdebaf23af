from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.lag.lag import OffsetReset, assignor_lag, lag, raw_lag
from tests.property.pipeline.lag import oracles
from tests.support.job.measures import ints, plain

offsets = st.none() | st.integers(0, 9) | st.integers(0, 2**63 - 1)
rows = st.lists(st.tuples(offsets, offsets, offsets), max_size=20)
resets = st.sampled_from(("latest", "earliest", "none"))


@given(rows)
@settings(deadline=None)
def test_lag_equals_the_plain_rule(rows: list[tuple[int | None, int | None, int | None]]) -> None:
    committed, log_start, log_end = (ints(row[i] for row in rows) for i in range(3))

    assert plain(lag(committed, log_start, log_end)) == [oracles.lag(*row) for row in rows]


@given(rows, resets)
@settings(deadline=None)
def test_assignor_lag_equals_the_plain_rule(
    rows: list[tuple[int | None, int | None, int | None]], reset: OffsetReset
) -> None:
    committed, log_start, log_end = (ints(row[i] for row in rows) for i in range(3))

    actual = assignor_lag(committed, log_start, log_end, reset)

    assert plain(actual) == [oracles.assignor_lag(*row, reset) for row in rows]


@given(offsets, offsets, offsets)
@settings(deadline=None)
def test_lag_is_never_negative_and_unknown_is_never_0(
    committed: int | None, log_start: int | None, log_end: int | None
) -> None:
    (actual,) = plain(lag(ints([committed]), ints([log_start]), ints([log_end])))

    assert (actual is None) == (committed is None or log_end is None)
    assert actual is None or actual >= 0


@given(offsets, offsets)
@settings(deadline=None)
def test_raw_lag_is_unknown_exactly_when_a_side_is(committed: int | None, log_end: int | None) -> None:
    (actual,) = plain(raw_lag(ints([committed]), ints([log_end])))

    assert actual == (None if committed is None or log_end is None else log_end - committed)


@given(st.integers(0, 99), st.integers(0, 99), st.lists(st.integers(0, 9), min_size=1, max_size=9))
@settings(deadline=None)
def test_lag_of_a_silent_group_follows_the_log_end(committed: int, log_end: int, growth: list[int]) -> None:
    ends = [log_end]
    for records in growth:
        ends.append(ends[-1] + records)
    many = ints([committed] * len(ends))

    lags = lag(many, ints([0] * len(ends)), ints(ends)).tolist()

    assert lags == sorted(lags)
    assert lags[-1] == max(0, ends[-1] - committed)
