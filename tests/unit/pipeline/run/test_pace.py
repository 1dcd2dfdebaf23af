"""When the next batch begins."""

import threading
import time

import pytest

from pipeline.run import pace
from pipeline.run.pace import Pace


class Clock:
    """Time that passes only while somebody waits, or is told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> bool:
        self.now_s += seconds
        return False


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
    return clock


def begins(of: Pace, clock: Clock, *batches_s: float) -> list[float]:
    """When batches begin that take so long, from the first one on."""
    first_s, found = clock.now_s, []
    for takes_s in batches_s:
        of.wait(clock)  # type: ignore[arg-type]
        found.append(clock.now_s - first_s)
        clock.now_s += takes_s
    return found


def test_batches_begin_an_interval_apart_however_long_they_take_within_it(clock: Clock) -> None:
    assert begins(Pace(30), clock, 1, 29, 0, 5) == [0, 30, 60, 90]


def test_batch_that_is_late_begins_at_once_and_does_not_make_the_next_ones_hurry(clock: Clock) -> None:
    assert begins(Pace(30), clock, 100, 1, 1, 1) == [0, 100, 130, 160]


def test_batch_after_one_that_left_records_begins_at_once(clock: Clock) -> None:
    of = Pace(30)
    begun = begins(of, clock, 4)
    of.hurry()

    assert begun + [4 + at for at in begins(of, clock, 1, 1)] == [0, 4, 34]


def test_wait_ends_when_the_stop_is_asked_for() -> None:
    stop, of = threading.Event(), Pace(3600)
    assert of.wait(stop) < 1
    threading.Timer(0.05, stop.set).start()
    begun_s = time.monotonic()

    waited_s = of.wait(stop)

    assert waited_s <= time.monotonic() - begun_s < 60
