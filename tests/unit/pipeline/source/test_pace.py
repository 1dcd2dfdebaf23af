"""When the next batch begins."""

import pytest

from pipeline.source.pace import Pace


class Clock:
    """Time that passes only while somebody waits, or is told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def begins(of: Pace, clock: Clock, *batches_s: float) -> list[float]:
    """When batches begin that take so long, from the first one on."""
    first_s, found = clock.now_s, []
    for takes_s in batches_s:
        while not of.is_due():
            clock.now_s += 0.5
        of.begun()
        found.append(clock.now_s - first_s)
        clock.now_s += takes_s
    return found


def test_batches_begin_an_interval_apart_however_long_they_take_within_it(clock: Clock) -> None:
    assert begins(Pace(30, clock_s=clock), clock, 1, 29, 0, 5) == [0, 30, 60, 90]


def test_batch_that_is_late_begins_at_once_and_does_not_make_the_next_ones_hurry(clock: Clock) -> None:
    assert begins(Pace(30, clock_s=clock), clock, 100, 1, 1, 1) == [0, 100, 130, 160]


def test_batch_after_one_that_left_records_begins_at_once(clock: Clock) -> None:
    of = Pace(30, clock_s=clock)
    begun = begins(of, clock, 4)
    of.hurry()

    assert begun + [4 + at for at in begins(of, clock, 1, 1)] == [0, 4, 34]


def test_batch_that_is_due_already_is_not_put_off_by_hurry(clock: Clock) -> None:
    of = Pace(30, clock_s=clock)
    begins(of, clock, 40)
    of.hurry()

    # Ten seconds late, and the one after it is on time again.
    assert begins(of, clock, 1, 1) == [0, 20]
