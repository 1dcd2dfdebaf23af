import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.lag.commits.window import WINDOW_SIZE, append_commit
from pipeline.lag.status import STATUS_NAMES, Offsets, judge
from tests.property.pipeline.lag import oracles
from tests.support.job.measures import Commit, Sample, ints, no_commits, rings, window_rows, windows

# Few values, so that equal offsets, equal times and times just at a limit come up often.
commit = st.tuples(
    st.integers(3, 6), st.integers(0, 12).map(lambda step: 15_000 * step), st.none() | st.integers(0, 4)
)
series = st.lists(commit, max_size=WINDOW_SIZE)
rising = series.map(lambda commits: [(4 + i // 3, 15_000 * i, lag) for i, (_, _, lag) in enumerate(commits)])
lagging = st.one_of(series, rising).map(
    lambda commits: [(offset, at, None if lag is None else lag + 2) for offset, at, lag in commits]
)
ring = st.lists(st.integers(0, 9), max_size=5).map(
    lambda ends: [(40_000 * i, end) for i, end in enumerate(sorted(ends))]
)
Row = tuple[list[Commit], list[Sample], int | None, int | None, bool]
rows = st.tuples(
    st.one_of(series, rising, lagging),
    ring,
    st.none() | st.integers(0, 5),
    st.none() | st.integers(5, 12),
    st.sampled_from((True, True, True, False)),
)


@given(st.lists(rows, min_size=1, max_size=8), st.integers(0, 20), st.integers(0, 2))
@settings(deadline=None, max_examples=150)
def test_status_equals_the_first_rule_that_holds(rows: list[Row], now: int, allowed_lag: int) -> None:
    window, ring, log_start, log_end, topic_exists = zip(*rows, strict=True)

    codes = judge(
        windows(*window),
        rings(*ring),
        Offsets(
            committed=ints(commits[-1][0] if commits else None for commits in window),
            log_start=ints(log_start),
            log_start_before=ints(log_start),
            log_end=ints(log_end),
        ),
        topic_exists=np.array(topic_exists),
        now_ms=15_000 * now,
        allowed_lag=allowed_lag,
    )

    assert [STATUS_NAMES[code] for code in codes.tolist()] == [
        oracles.status(
            commits,
            samples,
            log_start=start,
            log_end=end,
            topic_exists=exists,
            now_ms=15_000 * now,
            allowed_lag=allowed_lag,
        )
        for commits, samples, start, end, exists in rows
    ]
    assert codes.dtype == np.int8


@given(st.lists(st.tuples(commit | st.none(), st.booleans()), max_size=30))
@settings(deadline=None)
def test_window_holds_the_last_new_commits_since_the_offset_was_deleted(
    events: list[tuple[Commit | None, bool]],
) -> None:
    window = no_commits(1)
    expected: list[Commit] = []
    for event, is_new in events:
        offset, at, lag = event or (None, None, None)
        window = append_commit(
            window,
            committed=ints([offset]),
            commit_timestamp_ms=ints([at]),
            lag=ints([lag]),
            is_new=np.array([is_new]),
        )
        if event is None:
            expected = []
        elif is_new:
            expected = [*expected, event][-WINDOW_SIZE:]
        elif expected and lag is not None:
            expected[-1] = (*expected[-1][:2], lag)

    assert window_rows(window) == [expected]
