"""One sample: what could grow, as it is now."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pipeline.config.model import TablesConfig
from pipeline.run.query import Report
from pipeline.tables.schemas import TABLES
from tests.benchmarks import processes

_EVERY_S = 30.0


class Sampler:
    """Takes samples of one run.

    Attributes:
        samples: So far, oldest first; sizes in bytes, memory in MiB, times in seconds.
    """

    def __init__(
        self,
        tables: TablesConfig,
        reports: list[Report],
        *,
        broker_pid: int | None,
        say: Callable[[str], None],
    ) -> None:
        self.samples: list[dict[str, Any]] = []
        self._tables = tables
        self._reports = reports
        self._broker_pid = broker_pid
        self._say = say
        self._begun_s = time.monotonic()
        self._seen = 0

    def run(self, *, until_s: float) -> None:
        """A sample every 30 seconds, from the first finished batch to `until_s` on the monotonic clock."""
        while time.monotonic() < until_s:
            time.sleep(min(_EVERY_S, max(0.0, until_s - time.monotonic())))
            if self._reports:
                self.samples.append(self._sample())
                self._say(_line(self.samples[-1]))

    def _sample(self) -> dict[str, Any]:
        reports = self._reports[self._seen :]
        self._seen += len(reports)
        sizes: dict[str, int] = {}
        for table in TABLES:
            folder = Path(self._tables.root) / table.name
            log = _size(folder / "_delta_log")
            data = _size(folder)
            sizes |= {
                f"{table.name} data files": data[0] - log[0],
                f"{table.name} data bytes": data[1] - log[1],
                f"{table.name} log files": log[0],
                f"{table.name} log bytes": log[1],
            }
        files, size = _size(Path(self._tables.checkpoint_path))
        return {
            "at_s": round(time.monotonic() - self._begun_s, 1),
            "batches": len(reports),
            "batch median s": round(statistics.median(r.seconds for r in reports), 2) if reports else None,
            **sizes,
            "checkpoint files": files,
            "checkpoint bytes": size,
            "heap MiB": _heap_mib(),
            **{f"{name} resident MiB": mib for name, mib in processes.resident_mib(self._broker_pid).items()},
        }


def _size(folder: Path) -> tuple[int, int]:
    """Files below a folder, and their bytes; what disappears meanwhile does not count."""
    sizes: list[int] = []
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return len(sizes), sum(sizes)


def _heap_mib() -> int:
    """Heap of the driver that is still in use after a full collection."""
    java = SparkSession.builder.getOrCreate().sparkContext._jvm.java.lang
    java.System.gc()
    return int(java.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed() // 2**20)


def _line(sample: dict[str, Any]) -> str:
    files = sum(number for name, number in sample.items() if name.endswith("files"))
    size = sum(number for name, number in sample.items() if name.endswith("bytes"))
    return (
        f"{sample['at_s']:.0f} s: {sample['batches']} batches, median {sample['batch median s']} s, {files} files, "
        f"{size / 2**20:.1f} MiB on disk, heap {sample['heap MiB']} MiB, "
        f"resident {sample['jvm resident MiB']} + {sample['python resident MiB']} + {sample['workers resident MiB']} MiB"
    )
