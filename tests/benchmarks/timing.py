"""Repeated measurement of one action: wall time, and processor time, which a busy machine distorts less."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.benchmarks import processes


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds of each repetition, warm-up left out."""

    wall_s: tuple[float, ...]
    cpu_s: tuple[float, ...]

    @property
    def best_s(self) -> float:
        """The repetition that was disturbed least."""
        return min(self.wall_s)

    @property
    def median_s(self) -> float:
        """The usual repetition."""
        return statistics.median(self.wall_s)

    def figures(self, count: int) -> dict[str, float | int]:
        """Rates for an action that handles `count` records, and the processor time it took."""
        return {
            "records": count,
            "best_per_s": round(count / self.best_s),
            "median_per_s": round(count / self.median_s),
            "repetitions": len(self.wall_s),
            "cpu_s_median": round(statistics.median(self.cpu_s), 3),
        }


def repeat(action: Callable[[], object], *, times: int, warm_up: int, without: int | None = None) -> Timing:
    """Run `action` and measure it.

    Args:
        action: What to measure.
        times: Repetitions that count.
        warm_up: Repetitions before them.
        without: Process whose processor time is not part of it, such as the broker.
    """
    for _ in range(warm_up):
        action()
    wall: list[float] = []
    cpu: list[float] = []
    for _ in range(times):
        cpu_begun, begun = processes.cpu_s(without), time.perf_counter()
        action()
        wall.append(time.perf_counter() - begun)
        cpu.append(processes.cpu_s(without) - cpu_begun)
    return Timing(wall_s=tuple(wall), cpu_s=tuple(cpu))


def p(values: list[float], percent: int) -> float:
    """A percentile as an observed value: the smallest one that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
