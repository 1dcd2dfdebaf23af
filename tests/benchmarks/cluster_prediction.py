"""The costs of `pipeline.config.cluster_times`, fitted to batches of one core, and held against batches of more.

A cost is processor time, which other work on the machine hardly changes, and of several batches the least: what a
batch takes on a core of its own.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.config.cluster_times import DRIVER, Cost, Times, predicted, rows_of_tasks
from tests.benchmarks.cluster_tasks import Job

_COSTS = ["what", "fixed s", "µs a row"]
_TIMES = ["rows", "cores as", "what", "measured s", "predicted s", "difference"]
_NUMBER = re.compile(r" \d+ groups$")


Used: TypeAlias = Callable[[float, float], float]
"""Processor seconds that were used between two times, in ms since the epoch."""


class Measured(NamedTuple):
    """Batches of one size on one cluster."""

    groups: int
    partitions: int
    """Of each group."""
    cores: int
    name: str
    """Of where these are."""
    spans_ms: Mapping[int, tuple[float, float]]
    """By batch: its begin and its end, as the driver's log has them."""
    jobs: Sequence[Job]
    of_executors: Used
    of_driver: Used

    @property
    def sizes(self) -> dict[str, int]:
        """Partitions by group."""
        return {f"{number:09}": self.partitions for number in range(self.groups)}

    @property
    def rows(self) -> int:
        """Of `partition_lag`."""
        return self.groups * self.partitions

    @property
    def batch_s(self) -> float:
        """The fastest batch."""
        return min(ended_ms - begun_ms for begun_ms, ended_ms in self.spans_ms.values()) / 1000

    def processor_s(self) -> dict[str, float]:
        """By job: the processor seconds of the executors in it; and those of the driver in the whole batch."""
        found = self._least(lambda job: self.of_executors(job.tasks_begun_ms, job.tasks_ended_ms))
        return found | {DRIVER: min(self.of_driver(*span) for span in self.spans_ms.values())}

    def times(self) -> Times:
        """From the launch of each job's first task to the end of its last; the rest of the batch is the driver's."""
        job_s = self._least(lambda job: (job.tasks_ended_ms - job.tasks_begun_ms) / 1000)
        return Times(driver_s=self.batch_s - sum(job_s.values()), job_s=job_s)

    def _least(self, of: Callable[[Job], float]) -> dict[str, float]:
        by_batch: dict[int, defaultdict[str, float]] = {
            number: defaultdict(float) for number in self.spans_ms
        }
        for job in self.jobs:
            by_batch[job.batch_id][_NUMBER.sub("", job.name)] += of(job)
        names = dict.fromkeys(name for batch in by_batch.values() for name in batch)
        return {name: min(batch[name] for batch in by_batch.values()) for name in names}


def tables(measured: Sequence[Measured]) -> Iterator[dict[str, Any]]:
    """The costs by job, and what they predict beside what was measured; nothing for fewer than two sizes."""
    of_one_core = [one for one in measured if one.cores == 1]
    if len(of_one_core) < 2:
        return
    costs = fitted(of_one_core)
    rows = [[job, round(cost.fixed_s, 3), round(cost.row_s * 1e6, 3)] for job, cost in costs.items()]
    yield {"header": _COSTS, "rows": rows}
    yield {"header": _TIMES, "rows": [row for one in measured for row in _compared(one, costs)]}


def fitted(of_one_core: Sequence[Measured]) -> dict[str, Cost]:
    """By job and for the driver: least squares of the relative errors over all sizes."""
    seen: defaultdict[str, list[tuple[int, int, float]]] = defaultdict(list)
    for one in of_one_core:
        tasks = rows_of_tasks(one.sizes, cores=one.cores) | {DRIVER: [one.rows]}
        for name, seconds in one.processor_s().items():
            seen[name].append((len(tasks[name]), sum(tasks[name]), seconds))
    return {name: _fitted(seen[name]) for name in seen}


def _fitted(seen: Sequence[tuple[int, int, float]]) -> Cost:
    """From tasks, rows and seconds: neither cost is below zero."""
    tasks, rows, seconds = (np.array(column, float) for column in zip(*seen, strict=True))
    weighed = np.column_stack([tasks / seconds, rows / seconds])
    fixed_s, row_s = np.linalg.lstsq(weighed, np.ones(len(seen)), rcond=None)[0]
    if fixed_s < 0 or row_s < 0:
        # The better of the two that are left.
        column = 1 if fixed_s < 0 else 0
        only = weighed[:, column]
        least = float(only.sum() / (only @ only))
        fixed_s, row_s = (0.0, least) if column else (least, 0.0)
    return Cost(float(fixed_s), float(row_s))


def _compared(one: Measured, costs: Mapping[str, Cost]) -> Iterator[list[Any]]:
    wanted, found = predicted(one.sizes, cores=one.cores, costs=costs), one.times()
    pairs = [
        ("batch", one.batch_s, wanted.batch_s),
        (DRIVER, found.driver_s, wanted.driver_s),
        *((job, found.job_s.get(job, 0.0), seconds) for job, seconds in wanted.job_s.items()),
    ]
    for what, measured_s, predicted_s in pairs:
        difference = f"{predicted_s / measured_s - 1:+.0%}" if measured_s else "not measured"
        yield [one.rows, one.name, what, round(measured_s, 2), round(predicted_s, 2), difference]
