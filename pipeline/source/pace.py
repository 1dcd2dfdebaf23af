"""Source: when the next batch begins: an interval after the last one, and at once while records are left to be read."""

import time
from collections.abc import Callable


class Pace:
    """Of the batches of one query."""

    def __init__(self, interval_s: float, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        """The first batch is due now."""
        self._interval_s = interval_s
        self._clock_s = clock_s
        self._due_s = clock_s()

    def is_due(self) -> bool:
        """Whether the next batch begins now."""
        return self._clock_s() >= self._due_s

    def begun(self) -> None:
        """Count the interval from when this batch was due, so that delays do not add up, unless it is late by more."""
        now_s = self._clock_s()
        is_late = now_s - self._due_s >= self._interval_s
        self._due_s = (now_s if is_late else self._due_s) + self._interval_s

    def hurry(self) -> None:
        """The next batch is due now."""
        self._due_s = min(self._due_s, self._clock_s())
