"""Time of the jobs of a batch on a cluster, predicted from the times of tasks on one core.

Jobs have the tasks of a batch (`task_sizes`), which start in order, each as soon as a core is free; the driver's own
share is added, whatever the cores. The batch is the costliest one: every partition has a new commit, every group gets a
decision, and everything goes into the history.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heapreplace

from pipeline import task_sizes
from pipeline.placement import placed

DRIVER = "driver"
GROUP_ROWS = 1_000
"""Partitions of each group in the measurement."""
_OFFSETS_PARTITIONS = 50
"""Partitions of `__consumer_offsets` by default; one task reads one of them."""
_LEAST_PARALLELISM = 2
_RECORDS_A_TASK, _FEW_RECORDS = 50_000, 5_000
"""`source.partitions`, which needs Spark: below the second, the task that reads also requests log ends."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Time of one task of a job, or of the driver in a batch."""

    fixed_s: float
    row_s: float

    def of(self, rows: int) -> float:
        """Seconds for this number of rows."""
        return self.fixed_s + self.row_s * rows


MEASURED_COSTS: Mapping[str, Cost] = {
    "read": Cost(0.225, 7.02e-6),
    "fold topic_offsets": Cost(0.040, 0.0),
    "fold partition_lag": Cost(0.085, 7.713e-6),
    "fold lag_history": Cost(0.058, 1.369e-6),
    "decide": Cost(0.098, 8.689e-6),
    DRIVER: Cost(0.467, 2.337e-6),
}
"""Fitted by part `cluster` of the benchmarks to batches of one executor with one core, in `MEASURED_IN`."""
MEASURED_IN = "bench-20261125T145241Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Predicted times of one batch, in seconds."""

    driver_s: float
    """Executors do not shorten it."""
    job_s: Mapping[str, float]

    @property
    def batch_s(self) -> float:
        """The whole batch: jobs follow one another."""
        return self.driver_s + sum(self.job_s.values())


def groups_of(rows: int, *, largest: int = GROUP_ROWS) -> dict[str, int]:
    """Partitions by group: one of the largest size, the others of the measured size.

    Args:
        rows: Number of rows of `partition_lag`, at least 1.
        largest: Partitions of the largest group, at least `GROUP_ROWS`, the measured size.
    """
    largest = min(rows, largest)
    others, rest = divmod(rows - largest, GROUP_ROWS)
    sizes = [GROUP_ROWS] * (others // 2) + [largest] + [GROUP_ROWS] * (others - others // 2) + [rest]
    return {f"{number:09}": size for number, size in enumerate(sizes) if size}


def predicted(groups: Mapping[str, int], *, cores: int, costs: Mapping[str, Cost]) -> Times:
    """The times of a batch.

    Args:
        groups: Partitions by group, at least one group.
        cores: Cores of all executors together.
        costs: Costs by job, and of `DRIVER`.
    """
    return Times(
        driver_s=costs[DRIVER].of(sum(groups.values())),
        job_s={
            job: _ended_after_s(map(costs[job].of, tasks), cores=cores)
            for job, tasks in rows_of_tasks(groups, cores=cores).items()
        },
    )


def rows_of_tasks(groups: Mapping[str, int], *, cores: int) -> dict[str, list[int]]:
    """Rows of the tasks of each job, in the order in which the tasks begin."""
    # Jobs are cut by `defaultParallelism`, which Spark says is two even on one core of a cluster.
    wanted = max(_LEAST_PARALLELISM, cores)
    folded = _folded(groups, cores=wanted)
    decided = task_sizes.deciding(groups, cores=wanted)
    return {
        "read": _read(groups, cores=wanted),
        # The cost for the few topics of the measurement.
        "fold topic_offsets": [0],
        "fold partition_lag": folded,
        "fold lag_history": folded,
        "decide": [sum(groups[name] for name in share) for share in decided],
    }


def _read(groups: Mapping[str, int], *, cores: int) -> list[int]:
    """The commits of a group are in one partition of the offsets topic; the last task only requests log ends."""
    of_partition = [sum(share) for share in placed(groups.values(), int, tasks=_OFFSETS_PARTITIONS)]
    rows = sum(of_partition)
    tasks = min(cores, _OFFSETS_PARTITIONS, -(-rows // _RECORDS_A_TASK))
    read = [sum(share) for share in placed(of_partition, int, tasks=tasks)]
    return read if rows <= _FEW_RECORDS else [*read, 0]


def _folded(groups: Mapping[str, int], *, cores: int) -> list[int]:
    ranges = task_sizes.folding("group_id", groups, cores=cores)
    rows = [0] * ranges.count
    for name, count in groups.items():
        rows[bisect_right(ranges.starts, name)] += count
    return rows


def _ended_after_s(tasks_s: Iterable[float], *, cores: int) -> float:
    free_at_s = [0.0] * cores
    for task_s in tasks_s:
        heapreplace(free_at_s, free_at_s[0] + task_s)
    return max(free_at_s)
