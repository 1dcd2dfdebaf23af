"""The costs of `pipeline.config.cluster_times`, fitted to batches of one core, and held against batches of more.

What a task costs is processor time, which other work on the machine hardly changes. Of several batches the least
counts, job by job.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.config.cluster_times import DRIVER, Cost, predicted, rows_of_tasks
from tests.benchmarks.cluster_tasks import Job

COSTS = ["what", "fixed s", "µs a row"]
_TIMES = ["rows", "cores as", "what", "tasks", "predicted", "measured s", "predicted s", "difference"]
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
    seconds: Mapping[int, float]
    """By batch, as the driver's log has it."""
    jobs: Sequence[Job]
    used: Used
    """By the executors."""

    @property
    def sizes(self) -> dict[str, int]:
        """Partitions by group."""
        return {f"{number:09}": self.partitions for number in range(self.groups)}

    @property
    def rows(self) -> int:
        """Of `partition_lag`."""
        return self.groups * self.partitions

    def costs_s(self) -> dict[str, float]:
        """By job: the processor seconds of the executors in it; and the seconds that are the driver's."""
        return self._least(lambda job: self.used(job.tasks_begun_ms, job.tasks_ended_ms)) | {
            DRIVER: self.times()[DRIVER]
        }

    def times(self) -> dict[str, float]:
        """By job: from the launch of its first task to the end of its last; the rest of a batch is the driver's."""
        found = self._least(_took_s)
        rest = (
            whole_s - sum(_took_s(job) for job in self.jobs if job.batch_id == number)
            for number, whole_s in self.seconds.items()
        )
        return found | {DRIVER: min(rest)}

    def tasks(self) -> dict[str, int]:
        """By job: how many it had."""
        return {_NUMBER.sub("", job.name): len(job.run_ms) for job in self.jobs}

    def _least(self, of: Callable[[Job], float]) -> dict[str, float]:
        by_batch: dict[int, defaultdict[str, float]] = {number: defaultdict(float) for number in self.seconds}
        for job in self.jobs:
            by_batch[job.batch_id][_NUMBER.sub("", job.name)] += of(job)
        names = dict.fromkeys(name for batch in by_batch.values() for name in batch)
        return {name: min(batch[name] for batch in by_batch.values()) for name in names}


def _took_s(job: Job) -> float:
    return (job.tasks_ended_ms - job.tasks_begun_ms) / 1000


def tables(measured: Sequence[Measured]) -> Iterator[dict[str, Any]]:
    """The costs by job, and what they predict beside what was measured; nothing for fewer than two sizes."""
    of_one_core = [one for one in measured if one.cores == 1]
    if len(of_one_core) < 2:
        return
    costs = fitted(of_one_core)
    rows = [[job, round(cost.fixed_s, 3), round(cost.row_s * 1e6, 3)] for job, cost in costs.items()]
    yield {"header": COSTS, "rows": rows}
    yield {"header": _TIMES, "rows": [row for one in measured for row in _compared(one, costs)]}


def fitted(of_one_core: Sequence[Measured]) -> dict[str, Cost]:
    """By job and for the driver: least squares of the relative errors over all sizes."""
    seen: defaultdict[str, list[tuple[int, int, float]]] = defaultdict(list)
    for one in of_one_core:
        tasks = rows_of_tasks(one.sizes, cores=one.cores) | {DRIVER: [one.rows]}
        for name, seconds in one.costs_s().items():
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
    cut, seen = rows_of_tasks(one.sizes, cores=one.cores), one.tasks()
    pairs = [
        ("batch", min(one.seconds.values()), wanted.batch_s),
        (DRIVER, found[DRIVER], wanted.driver_s),
        *((job, found[job], seconds) for job, seconds in wanted.job_s.items()),
    ]
    for what, measured_s, predicted_s in pairs:
        tasks = (seen[what], len(cut[what])) if what in cut else ("", "")
        difference = f"{predicted_s / measured_s - 1:+.0%}"
        yield [one.rows, one.name, what, *tasks, round(measured_s, 2), round(predicted_s, 2), difference]
