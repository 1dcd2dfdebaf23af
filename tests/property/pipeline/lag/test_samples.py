from itertools import accumulate

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.lag import samples
from pipeline.lag.samples import RING_SIZE
from tests.property.pipeline.lag import oracles
from tests.support.job.measures import Sample, after, ints, no_samples, ring_rows

Observation = tuple[int | None, int | None]

steps = st.tuples(
    st.integers(1, 60_000) | st.just(0) | st.integers(-90_000, -1),
    st.just(0) | st.integers(1, 50) | st.integers(-30, -1),
    st.booleans(),
)
forward_steps = st.tuples(st.integers(1, 60_000), st.integers(0, 50), st.just(True))


@st.composite
def observations(
    draw: st.DrawFn, step: st.SearchStrategy[tuple[int, int, bool]] = steps
) -> list[Observation]:
    """Mostly forward in time and offset, with jumps back and gaps."""
    observed_at_ms, log_end = 1_000_000, 100
    result: list[Observation] = []
    for duration_ms, growth, is_known in draw(st.lists(st.one_of(forward_steps, step), max_size=60)):
        observed_at_ms, log_end = observed_at_ms + duration_ms, max(0, log_end + growth)
        result.append((observed_at_ms, log_end if is_known else None))
    return result


@given(st.lists(observations(), min_size=1, max_size=4))
@settings(deadline=None)
def test_rings_equal_the_plain_rule(series: list[list[Observation]]) -> None:
    expected: list[list[Sample]] = [[] for _ in series]
    ring = no_samples(len(series))
    for tick in range(max(map(len, series))):
        row = [observed[tick] if tick < len(observed) else (None, None) for observed in series]
        ring = samples.append(ring, ints(at for at, _ in row), ints(end for _, end in row))
        expected = [oracles.append(*pair) for pair in zip(expected, *zip(*row, strict=True), strict=True)]

    assert ring_rows(ring) == expected


@given(st.lists(forward_steps, min_size=RING_SIZE + 1, max_size=3 * RING_SIZE))
@settings(deadline=None)
def test_full_ring_is_thinned_by_the_plain_rule(steps: list[tuple[int, int, bool]]) -> None:
    times = accumulate(duration_ms for duration_ms, _, _ in steps)
    observed = [(at, number) for number, at in enumerate(times)]

    ring = after(*observed)

    expected: list[Sample] = []
    for sample in observed:
        expected = oracles.append(expected, *sample)
    assert ring_rows(ring) == [expected]


@given(observations())
@settings(deadline=None)
def test_ring_keeps_order_and_bounds(observed: list[Observation]) -> None:
    ring = after(*observed)

    (row,) = ring_rows(ring)
    times, ends = [at for at, _ in row], [end for _, end in row]
    assert len(row) <= RING_SIZE
    assert times == sorted(set(times))
    assert ends == sorted(ends)


@given(observations(forward_steps).filter(bool))
@settings(deadline=None)
def test_ring_keeps_the_first_and_the_last_observation(observed: list[Observation]) -> None:
    ring = after(*observed)

    (row,) = ring_rows(ring)
    assert (row[0], row[-1]) == (observed[0], observed[-1])


@given(observations())
@settings(deadline=None)
def test_last_observation_again_changes_nothing(observed: list[Observation]) -> None:
    ring = after(*observed)

    again = after(*observed[-1:], ring=ring)

    assert ring_rows(again) == ring_rows(ring)


@given(st.lists(observations(), min_size=1, max_size=6), st.integers(0, 6), st.integers(0, 6))
@settings(deadline=None)
def test_slices_of_a_column_are_read_as_the_rows_they_are(
    series: list[list[Observation]], start: int, length: int
) -> None:
    rows = [ring_rows(after(*observed))[0] for observed in series]
    column = samples.to_arrow(after())
    for observed in series:
        column = pa.concat_arrays([column, samples.to_arrow(after(*observed))])

    sliced = samples.from_arrow(column.slice(1 + start, length))

    assert ring_rows(sliced) == rows[start : start + length]
