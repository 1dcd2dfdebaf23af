"""Lag at a commit of many partitions is that of each by the plain rule."""

from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.lag.commits.at_commit import lag_at_commit
from tests.property.pipeline.lag import oracles
from tests.support.job.measures import Sample, ints, plain, rings

OFFSETS = st.none() | st.integers(0, 12)
RINGS = st.lists(st.integers(0, 12), max_size=16).flatmap(
    lambda ends: st.lists(st.sampled_from((2_000, 2_000, 9_000)), min_size=len(ends), max_size=len(ends)).map(
        lambda gaps: list(zip(accumulate(gaps, initial=0), sorted(ends), strict=False))
    )
)
MOST_GAP_MS = 5_000
Row = tuple[list[Sample], int | None, int | None, int | None, int | None, int | None, int | None]


@given(
    st.lists(
        st.tuples(
            RINGS,
            OFFSETS,
            st.none() | st.integers(-5, 40).map(lambda s: 1_000 * s),
            OFFSETS,
            OFFSETS,
            OFFSETS,
            OFFSETS,
        ),
        min_size=1,
        max_size=8,
    )
)
@settings(deadline=None)
def test_lag_at_a_commit_is_that_of_the_plain_rule(rows: list[Row]) -> None:
    ring, committed, commit_ms, log_start, log_end, readable, last_stable = zip(*rows, strict=True)

    found = lag_at_commit(
        rings(*ring),
        committed=ints(committed),
        commit_ms=ints(commit_ms),
        log_start=ints(log_start),
        log_end=ints(log_end),
        readable=ints(readable),
        last_stable=ints(last_stable),
        most_gap_ms=MOST_GAP_MS,
    )

    assert plain(found) == [oracles.lag_at_commit(*row, MOST_GAP_MS) for row in rows]
