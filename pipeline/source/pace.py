"""When batches begin."""

import time
from collections.abc import Callable


def due_after(due: float, begun: float, interval: float) -> float:
    """When the batch after this one is due, all in one unit of time.

    The interval counts from when this batch was due, so that delays do not add up, unless it began later by more.
    """
    return (begun if begun - due >= interval else due) + interval


class Pace:
    """Schedule of one query's batches: one per interval, and at once while records are left."""

    def __init__(self, interval_s: float, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        """The first batch is due now."""
        self._interval_s = interval_s
        self._clock_s = clock_s
        self._due_s = clock_s()

    def is_due(self) -> bool:
        """Return whether the next batch is due."""
        return self._clock_s() >= self._due_s

    def begun(self) -> None:
        """The next batch is due an interval from now or from when this one was (`due_after`)."""
        self._due_s = due_after(self._due_s, self._clock_s(), self._interval_s)

    def hurry(self) -> None:
        """The next batch is due now."""
        self._due_s = min(self._due_s, self._clock_s())
