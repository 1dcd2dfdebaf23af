"""Processor time of executors, moment by moment: what else a machine does hardly changes it."""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from types import TracebackType

from tests.benchmarks import processes

_LOOK_EVERY_S = 0.05
_TREE_EVERY_S = 0.5


class ProcessorLog:
    """Looks from the beginning to the end of the block, whatever processes come and go below the roots."""

    def __init__(self, roots: Callable[[], Iterable[int]]) -> None:
        """Nothing is looked at yet.

        Args:
            roots: Processes that count, each with those below it, as of now.
        """
        self._roots = roots
        self._times_ms: list[float] = []
        self._cpu_s: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "ProcessorLog":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def between(self, begun_ms: float, ended_ms: float) -> float:
        """Processor seconds that were used between two times, in ms since the epoch."""
        return self._at(ended_ms) - self._at(begun_ms)

    def _at(self, time_ms: float) -> float:
        """On a straight line between two looks."""
        times, used = self._times_ms, self._cpu_s
        behind = min(max(bisect_right(times, time_ms), 1), len(times) - 1)
        share = (time_ms - times[behind - 1]) / (times[behind] - times[behind - 1])
        return used[behind - 1] + min(max(share, 0.0), 1.0) * (used[behind] - used[behind - 1])

    def _look(self) -> None:
        last: dict[int, float] = {}
        used_s, listed_s = 0.0, -_TREE_EVERY_S
        while not self._ended.wait(_LOOK_EVERY_S):
            if time.monotonic() - listed_s >= _TREE_EVERY_S:
                # What one that comes has used by then it has used since the last list.
                last = {pid: last.get(pid, 0.0) for pid in processes.below(self._roots())}
                listed_s = time.monotonic()
            for pid, before_s in last.items():
                last[pid] = max(before_s, processes.cpu_of(pid))
                used_s += last[pid] - before_s
            self._times_ms.append(time.time() * 1000)
            self._cpu_s.append(used_s)
