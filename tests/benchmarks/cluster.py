"""A batch on a standalone Spark cluster of this machine, beside the same batch on `local[2]`.

The driver is submitted as an operator does it; the machine has two cores wherever they are. Every batch has a new
commit of every row, plans, publishes and writes history. A round of commits is made as soon as a batch has ended, and
counts if the next one has taken all of it.
"""

import json
import re
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks import cluster_prediction, cluster_tasks
from tests.benchmarks.cluster_prediction import Measured
from tests.benchmarks.cluster_processors import ProcessorLog
from tests.benchmarks.load import Load
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.job.job import EAGER_PLAN
from tests.support.spark.event_log import event_log
from tests.support.spark.spark_cluster import SparkCluster
from tests.support.spark.submitted_driver import Drivers, SubmittedDriver
from tests.support.waiting import wait_until

Say = Callable[[str], None]

_PARTITIONS = 1000
_OFFSETS_PARTITIONS = 50
_MEMORY = "--driver-memory 2g --executor-memory 1g"
_SETTINGS = """\
[trigger]
interval_s = {interval_s}
[history]
interval_s = 1
max_gap_s = 1
[plan]
dry_run = false
{eager_plan}"""
_BATCH = re.compile(r"batch_id=(\d+) seconds=(\S+) .*counts=(\{.*?\}) steps=(\{.*?\})")
_WARM_UP, _BATCHES = 2, 5
_STEPS = ("read_source", "store_lag", "store_history", "make_plans", "record_decisions", "publish_plans")
_SECONDS = ("first batch s", "batch p50 s", "fastest", "slowest")
_HEADER = ["rows", "two cores as", "executors at work", *_SECONDS, *_STEPS]
_WITHIN_S = 300.0


class _Size(NamedTuple):
    groups: int
    interval_s: int
    """A batch and the commits for the next one are done in it."""


class _Cores(NamedTuple):
    name: str
    executors: int = 0
    cores: int = 0
    """Of each executor."""


_SIZES = (_Size(10, 5), _Size(200, 10), _Size(1000, 45))
_CORES = (
    _Cores("local[2]"),
    _Cores("1 executor of 1", 1, 1),
    _Cores("1 executor of 2", 1, 2),
    _Cores("2 executors of 1", 2, 1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """What the log says of one."""

    batch_id: int
    seconds: float
    commits: int
    steps: dict[str, float]


class _Run(NamedTuple):
    at_work: int
    """Executors that have a Python."""
    first_s: float
    counted: list[_Batch]
    measured: Measured

    def figures(self) -> list[float]:
        """Of `_SECONDS` and `_STEPS`."""
        seconds = [one.seconds for one in self.counted]
        whole = (self.first_s, statistics.median(seconds), min(seconds), max(seconds))
        steps = (statistics.median(one.steps.get(step, 0.0) for one in self.counted) for step in _STEPS)
        return [round(figure, 2) for figure in (*whole, *steps)]


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Seconds of a batch by rows, and by where its two cores are."""
    rows, work, batches = list[list[Any]](), list[list[Any]](), {}
    measured: list[Measured] = []
    for size in _SIZES[:1] if quick else _SIZES:
        for cores in _CORES:
            run = _run(size, cores, 1 if quick else _BATCHES)
            row = [size.groups * _PARTITIONS, cores.name, run.at_work, *run.figures()]
            say(", ".join(f"{what}: {value}" for what, value in zip(_HEADER, row, strict=True)))
            rows.append(row)
            work += [[*row[:2], *job] for job in cluster_tasks.rows_of(run.measured.jobs)]
            if cores.executors:
                measured.append(run.measured)
            batches[f"{row[0]} rows, {cores.name}"] = [
                one.steps | {"whole": one.seconds} for one in run.counted
            ]
    tables = [
        {"header": _HEADER, "rows": rows},
        {"header": ["rows", "cores as", *cluster_tasks.HEADER], "rows": work},
        *cluster_prediction.tables(measured),
    ]
    return {"tables": tables, "batches": batches}


def _run(size: _Size, cores: _Cores, batches: int) -> _Run:
    with (
        small_broker(offsets_topic_num_partitions=str(_OFFSETS_PARTITIONS)) as broker,
        tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder,
    ):
        create_offsets_topic(broker.bootstrap_servers)
        load = Load(
            bootstrap=broker.bootstrap_servers,
            groups=size.groups,
            topics=1,
            partitions=_PARTITIONS,
            offsets_partitions=_OFFSETS_PARTITIONS,
        )
        load.make_groups()
        # Coordinators know groups that were written past them only once they have read them; others would be dropped.
        broker.stop()
        broker.start()
        load.advance(one_in=1)
        with (
            _driver(Path(folder), load.bootstrap, size, cores) as (driver, spark),
            ProcessorLog(lambda: spark.executors() if spark else ()) as processors,
        ):
            counted = _watched(driver, load, _WARM_UP + batches)[_WARM_UP:]
            at_work = len(spark.busy_executors()) if spark else 0
            jobs = cluster_tasks.jobs_of(Path(folder, "events"), {one.batch_id for one in counted})
            measured = Measured(
                size.groups,
                _PARTITIONS,
                cores.executors * cores.cores,
                cores.name,
                {one.batch_id: one.seconds for one in counted},
                jobs,
                processors.between,
            )
            return _Run(at_work, _batches(driver)[0].seconds, counted, measured)


@contextmanager
def _driver(
    folder: Path, bootstrap: str, size: _Size, cores: _Cores
) -> Iterator[tuple[SubmittedDriver, SparkCluster | None]]:
    events = folder / "events"
    events.mkdir()
    settings = _SETTINGS.format(interval_s=size.interval_s, eager_plan=EAGER_PLAN)
    settings += "[spark]\n" + event_log(events)
    master, spark = "local[2]", None
    with ExitStack() as stack:
        if cores.executors:
            spark = SparkCluster(folder / "spark", workers=cores.executors, cores=cores.cores)
            master = stack.enter_context(spark).url
        drivers = Drivers(folder, settings, master, of_drivers=bootstrap, of_executors=bootstrap)
        drivers.variables["SUBMIT_ARGS"] = f"--master {master} {_MEMORY}"
        stack.callback(drivers.kill)
        yield drivers.submit("driver"), spark


def _watched(driver: SubmittedDriver, load: Load, wanted: int) -> list[_Batch]:
    """So many batches that have each taken a round of commits as a whole."""
    committed = load.rows
    _wait_for(driver, committed)
    first = len(_batches(driver))
    while len(seen := [one for one in _batches(driver)[first:] if one.commits == load.rows]) < wanted:
        assert committed < 3 * wanted * load.rows, (
            "the trigger is too short for a batch and a round of commits"
        )
        committed += load.advance(one_in=1)
        _wait_for(driver, committed)
    return seen


def _wait_for(driver: SubmittedDriver, commits: int) -> None:
    """Return when so many commits were read, by a batch that has just ended."""

    def are_read() -> bool:
        assert driver.status is None, driver.said
        return sum(one.commits for one in _batches(driver)) >= commits

    wait_until(are_read, what=f"{commits} commits to be read", within_s=_WITHIN_S)


def _batches(driver: SubmittedDriver) -> list[_Batch]:
    return [
        _Batch(
            batch_id=int(number),
            seconds=float(seconds),
            commits=json.loads(counts).get("commit", 0),
            steps=json.loads(steps),
        )
        for number, seconds, counts, steps in _BATCH.findall(driver.said)
    ]
