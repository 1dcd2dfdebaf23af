import numpy as np
import pytest

from pipeline.lag import samples
from pipeline.lag.samples import RING_SIZE
from tests.support.job.measures import after, ints, no_samples, ring_rows, rings


def test_observation_is_added_behind_the_others() -> None:
    ring = after((1000, 5), (2000, 9))

    assert ring_rows(ring) == [[(1000, 5), (2000, 9)]]


@pytest.mark.parametrize(
    ("observed_at_ms", "log_end"),
    [pytest.param(3000, None, id="log end"), pytest.param(None, 12, id="time")],
)
def test_unknown_observation_leaves_the_ring(observed_at_ms: int | None, log_end: int | None) -> None:
    ring = after((1000, 5), (2000, 9), (observed_at_ms, log_end))

    assert ring_rows(ring) == [[(1000, 5), (2000, 9)]]


def test_lower_log_end_restarts_the_ring() -> None:
    ring = after((1000, 5), (2000, 9), (3000, 8))

    assert ring_rows(ring) == [[(3000, 8)]]


def test_lower_log_end_restarts_the_ring_even_if_the_clock_went_back() -> None:
    ring = after((1000, 5), (2000, 9), (1500, 8))

    assert ring_rows(ring) == [[(1500, 8)]]


def test_clock_going_back_replaces_the_samples_ahead_of_it() -> None:
    ring = after((1000, 5), (2000, 6), (3000, 7), (2000, 9))

    assert ring_rows(ring) == [[(1000, 5), (2000, 9)]]


def test_clock_going_back_before_everything_leaves_the_new_sample_only() -> None:
    ring = after((1000, 5), (2000, 6), (500, 9))

    assert ring_rows(ring) == [[(500, 9)]]


def test_same_observation_twice_changes_nothing() -> None:
    once = after((1000, 5), (2000, 9))

    twice = after((2000, 9), ring=once)

    assert ring_rows(twice) == ring_rows(once)


def test_idle_partition_keeps_two_samples() -> None:
    ring = after((1000, 4), *((2000 + tick * 1000, 5) for tick in range(100)))

    assert ring_rows(ring) == [[(1000, 4), (2000, 5), (101_000, 5)]]


def test_full_ring_drops_the_inner_sample_that_is_needed_least_for_its_age() -> None:
    newest_are_closest = [*range(0, 1500, 100), 1490]
    full = rings([(at, at) for at in newest_are_closest])

    ring = after((1500, 1500), ring=full)

    expected = [0, *range(200, 1500, 100), 1490, 1500]
    assert ring_rows(ring) == [[(at, at) for at in expected]]


def test_full_ring_of_an_idle_partition_is_not_thinned() -> None:
    full = rings([(1000 * tick, min(tick, RING_SIZE - 2)) for tick in range(RING_SIZE)])

    ring = after((99_000, RING_SIZE - 2), ring=full)

    assert ring_rows(ring) == [[*ring_rows(full)[0][:-1], (99_000, RING_SIZE - 2)]]


def test_week_of_ticks_is_spanned_within_0_7_of_the_age() -> None:
    ticks = 7 * 24 * 3600 // 30

    ring = after(*((tick, tick) for tick in range(ticks)))

    times = ring.observed_at_ms[0]
    gaps, ages = np.diff(times) - 1, times[-1] - times[:-1]
    assert (times[0], times[-1]) == (0, ticks - 1)
    assert (gaps <= 0.7 * ages).all()


def test_rows_do_not_touch_one_another() -> None:
    before = rings([], [(1000, 5)], [(1000, 5), (2000, 9)], [(1000, 5), (5000, 9)])

    ring = samples.append(before, ints([3000, 3000, 3000, 3000]), ints([1, None, 2, 9]))

    assert ring_rows(ring) == [[(3000, 1)], [(1000, 5)], [(3000, 2)], [(1000, 5), (3000, 9)]]


def test_append_leaves_its_input_alone() -> None:
    before = rings([(1000, 5), (2000, 9)])

    after((3000, 1), ring=before)

    assert ring_rows(before) == [[(1000, 5), (2000, 9)]]


def test_no_partitions_give_no_rings() -> None:
    ring = samples.append(no_samples(0), ints([]), ints([]))

    assert ring_rows(ring) == []
