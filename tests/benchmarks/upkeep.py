"""What maintenance costs beside a history of 300,000 partitions, a day of which is really written.

Minutes of the day are written as fast as the disk takes them, so replaced files are kept for one minute, not for two
hours: that is about as large a share of the run as two hours are of a day.
"""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from deltalake import DeltaTable

from pipeline.config.model import Config
from pipeline.run.batch.upkeep import maintain_tables
from pipeline.run.driver import Driver
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.benchmarks.history_day import HistoryDay
from tests.support.job.batches import batch_of, idle_driver, stamp_of

_GROUPS = 5_000
_DAY_MINUTES = 1_440
_BATCHES_A_MINUTE = 2
_RETENTION_HOURS = 1 / 60


class _Begun:
    """Stands for the monitor: takes the time from the begin of a slice to what follows it."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[tuple[float, float]]] = defaultdict(list)
        """Of each slice, wall and processor."""
        self._open: tuple[str, float, float] | None = None

    def does(self, doing: str) -> None:
        """A slice begins, and the one before it has ended."""
        self.ended()
        self._open = doing, time.monotonic(), time.process_time()

    def ended(self) -> None:
        """The newest slice has ended."""
        if self._open is not None:
            doing, wall_s, cpu_s = self._open
            self.seconds[doing].append((time.monotonic() - wall_s, time.process_time() - cpu_s))
        self._open = None


def measure(say: Callable[[str], None], *, quick: bool) -> dict[str, Any]:
    """Seconds of each slice, and of all maintenance beside one batch; two hours of the day in a quick run."""
    minutes = 120 if quick else _DAY_MINUTES
    begun, beside_s, rows = _Begun(), [], 0
    with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as root:
        create_tables(root, retention_hours=_RETENTION_HOURS, storage_options={})
        store = Store(root, term=1)
        day = HistoryDay(store, groups=_GROUPS)
        driver = idle_driver(config=Config(), store=store, monitor=begun)
        for minute in range(minutes):
            rows += day.append_minute()
            for number in range(minute * _BATCHES_A_MINUTE, (minute + 1) * _BATCHES_A_MINUTE):
                begun_s = time.monotonic()
                _beside(driver, number, day.now_ms)
                begun.ended()
                beside_s.append(time.monotonic() - begun_s)
            if minute % 60 == 59:
                say(f"minute {minute + 1}: {rows} rows, most beside one batch {max(beside_s):.2f} s")
        files = DeltaTable(f"{root}/lag_history").get_add_actions()
        figures = {
            "rows": rows,
            "files": files.num_rows,
            "GB": round(sum(files["size_bytes"].to_pylist()) / 1e9, 3),
            "most_beside_a_batch_s": round(max(beside_s), 2),
            "share_of_batches_above_2_s": round(float(np.mean(np.array(beside_s) > 2)), 4),
        }
    header = ["slice", "times", "median s", "most s", "most processor s", "processor s in all"]
    table = [[doing, *_row(np.array(taken))] for doing, taken in begun.seconds.items()]
    return figures | {"tables": [{"header": header, "rows": table}]}


def _beside(driver: Driver, number: int, at_ms: int) -> None:
    # Whole intervals are spare: the clock of this world is ahead of the machine's.
    maintain_tables(batch_of(driver, stamp=stamp_of(batch_id=number, at_ms=at_ms)))


def _row(taken: np.ndarray[Any, np.dtype[np.float64]]) -> list[float]:
    wall, cpu = taken.T
    return [
        len(wall),
        *(round(float(one), 3) for one in (np.median(wall), wall.max(), cpu.max(), cpu.sum())),
    ]
