"""Waiting for storage: a driver whose tables cannot be written stays up, reports it, and continues by itself."""

import logging
import math
import threading
import time
from collections.abc import Callable

from pipeline.config.model import TablesConfig
from pipeline.errors import StoreError
from pipeline.run.health.monitor import Monitor
from pipeline.tables import storage

log = logging.getLogger(__name__)

_LONGEST_WAIT_S = 15.0
_SAID_EVERY_S = 60.0
_TODO = "make room, let the driver's user write there, or correct tables.root"


class StorageWait:
    """One for the life of the driver. An outage that returns before a batch has ended counts as the same one."""

    def __init__(
        self,
        tables: TablesConfig,
        monitor: Monitor,
        stop: threading.Event,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Check nothing yet.

        Args:
            tables: Places of the tables and the checkpoint, and how long to wait for them.
            monitor: Reports outages in heartbeats.
            stop: Ends every wait.
            clock_s: A monotonic clock.
        """
        self._tables = tables
        self._monitor = monitor
        self._stop = stop
        self._clock_s = clock_s
        self._since_s: float | None = None
        self._untried_since_s: float | None = None
        self._said_at_s = -math.inf
        self._waits = 0
        self.has_been_written = False
        """A batch has ended since the start of the driver, so its tasks were allowed to write."""

    def until_usable(self, error: str | None = None) -> None:
        """Return when writing the tables is worth a try, or when the driver should stop.

        A folder is probed until it takes a small file. An object store is not probed; the next attempt follows after a
        pause.

        Args:
            error: The failure that has just happened; None to probe first.

        Raises:
            StoreError: The tables could not be written for `tables.give_up_after_s`.
        """
        why = error or self._trouble()
        if why is None:
            return
        while why is not None and not self._stop.is_set():
            self._say(why)
            self._stop.wait(min(_LONGEST_WAIT_S, 2.0**self._waits))
            self._waits += 1
            why = self._trouble()

    def kafka_was_unavailable(self) -> None:
        """A batch wrote nothing: whether an outage goes on is unknown; its time stands still until the next failure."""
        if self._since_s is None or self._untried_since_s is not None:
            return
        self._untried_since_s = self._clock_s()
        self._monitor.storage_untried()

    def batch_ended(self) -> None:
        """Everything was written, so the outage is over."""
        self.has_been_written = True
        if self._since_s is not None:
            # Only now: storage that takes a small file, or is not probed, may not take a batch.
            lasted_s = round(self._clock_s() - self._since_s)
            log.info(
                "the tables are written again",
                extra={"tables_root": self._tables.root, "after_s": lasted_s},
            )
        self._since_s = self._untried_since_s = None
        self._waits, self._said_at_s = 0, -math.inf

    def _trouble(self) -> str | None:
        return storage.trouble(self._tables.root) or storage.trouble(self._tables.checkpoint_path)

    def _say(self, why: str) -> None:
        now_s = self._clock_s()
        if self._since_s is None:
            self._since_s = now_s
        if self._untried_since_s is not None:
            self._since_s += now_s - self._untried_since_s
            self._untried_since_s = None
        lasts_s, limit_s = now_s - self._since_s, self._tables.give_up_after_s
        if lasts_s > limit_s:
            raise StoreError(
                f"the tables under {self._tables.root} could not be written for {lasts_s:.0f} s "
                f"(tables.give_up_after_s = {limit_s}): {why}"
            )
        self._monitor.storage_failed(f"the tables cannot be written, and the driver waits: {why}; {_TODO}")
        if now_s - self._said_at_s >= _SAID_EVERY_S:
            self._said_at_s = now_s
            log.warning(
                "the tables cannot be written; lagwise waits and resumes on its own",
                extra={
                    "tables_root": self._tables.root,
                    "error": why,
                    "for_s": round(lasts_s),
                    "gives_up_after_s": limit_s,
                    "todo": _TODO,
                },
            )
