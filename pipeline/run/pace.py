"""When the next batch begins: an interval after the last one began, and at once while records are left to be read."""

import threading
import time


class Pace:
    """Of the batches of one query, which Spark starts as soon as the last one has ended."""

    def __init__(self, interval_s: float) -> None:
        """The first batch is due now."""
        self.interval_s = interval_s
        self._due_s = time.monotonic()

    def wait(self, stop: threading.Event) -> float:
        """Wait until the next batch is due, or somebody asks to stop.

        Returns:
            Seconds that it took.
        """
        begun_s = time.monotonic()
        stop.wait(max(0.0, self._due_s - begun_s))
        now_s = time.monotonic()
        # From when it was due, so that what Spark does between batches does not add up, unless it is late by more.
        is_late = now_s - self._due_s >= self.interval_s
        self._due_s = (now_s if is_late else self._due_s) + self.interval_s
        return now_s - begun_s

    def hurry(self) -> None:
        """The next batch is due now."""
        self._due_s = time.monotonic()
