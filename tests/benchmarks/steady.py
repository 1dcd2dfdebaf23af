"""A batch at steady state: the whole job on a real broker, one row in five with a new commit in every batch.

Every batch also plans, publishes and writes history for all that changed, which in production happens with
every second batch (30-second trigger, plans and history once a minute).
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pipeline.config.model import Config, HistoryConfig, KafkaConfig, TablesConfig, TriggerConfig
from pipeline.run.job import Job
from pipeline.run.query import Report
from tests.benchmarks import processes
from tests.benchmarks.load import Load
from tests.benchmarks.store_requests import RequestCount
from tests.benchmarks.timing import p
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.job.job import eager_plan
from tests.support.job.steps import AMONG_GHOSTS
from tests.support.spark.object_store import BUCKET, object_store
from tests.support.spark.store_proxy import StoreProxy

Say = Callable[[str], None]

_OFFSETS_PARTITIONS = 50
_ONLY_NOW_AND_THEN = ("make_plans", "publish_plans", "store_history")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One size of a cluster, and how long it is watched."""

    groups: int
    topics: int
    partitions: int
    warm_up: int
    batches: int
    driver_memory: str = "2g"
    answers_after_s: float | None = None
    """Of an object store with the tables, from the first measured batch on; None for tables in a folder."""

    def measure(self, say: Say, *, quick: bool) -> dict[str, Any]:
        """Percentiles of the whole batch, cost by step, processor time and peak memory."""
        with (
            tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder,
            small_broker(offsets_topic_num_partitions=str(_OFFSETS_PARTITIONS)) as broker,
            _tables(Path(folder), in_bucket=self.answers_after_s is not None) as (tables, proxy),
        ):
            create_offsets_topic(broker.bootstrap_servers)
            load = Load(
                bootstrap=broker.bootstrap_servers,
                groups=self.groups,
                topics=self.topics,
                partitions=self.partitions,
                offsets_partitions=_OFFSETS_PARTITIONS,
            )
            load.prepare()
            say(f"{load.rows} rows, {load.asked} partitions: in the broker")
            watch = _Watch(load=load, warm_up=self.warm_up, batches=3 if quick else self.batches, say=say)
            count = None if proxy is None else RequestCount(proxy)
            config = _config(broker.bootstrap_servers, tables, self.driver_memory)
            job = Job(config, on_batch=watch, run_batch=AMONG_GHOSTS if count is None else count.run_batch)
            watch.end = job.stop.set
            watch.broker_pid = broker.pid
            if proxy is not None:
                watch.warm = partial(proxy.delay, self.answers_after_s)
            job.run()
        return watch.figures() | ({} if count is None else count.figures(watch.batches))


SIZES = {
    "rows-10k": Size(groups=10, topics=1, partitions=1000, warm_up=8, batches=15),
    "rows-10k-bucket": Size(groups=10, topics=1, partitions=1000, warm_up=8, batches=15, answers_after_s=0.0),
    "rows-10k-bucket-2s": Size(
        groups=10, topics=1, partitions=1000, warm_up=2, batches=1, answers_after_s=2.0
    ),
    "partitions-10k": Size(groups=1, topics=10, partitions=1000, warm_up=8, batches=15),
    "rows-100k": Size(groups=100, topics=1, partitions=1000, warm_up=8, batches=12),
    "rows-1m": Size(groups=1000, topics=1, partitions=1000, warm_up=0, batches=3, driver_memory="4g"),
    "rows-3m": Size(groups=3000, topics=1, partitions=1000, warm_up=0, batches=2, driver_memory="6g"),
}


@dataclass(slots=True, kw_only=True)
class _Watch:
    """Sees every finished batch, and makes the traffic for the next one, which does not count as part of it."""

    load: Load
    warm_up: int
    batches: int
    say: Say
    end: Callable[[], None] = lambda: None
    warm: Callable[[], object] = lambda: None
    """Called before the first measured batch."""
    broker_pid: int | None = None
    first_s: float = 0.0
    reports: list[Report] = field(default_factory=list)
    whole_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    commits: int = 0
    peak_mib: dict[str, int] = field(default_factory=dict)
    _cpu_mark_s: float = 0.0
    _extra_s: float = 0.0
    """Of the last batch: waiting for its turn, and for the traffic."""

    def __call__(self, report: Report) -> None:
        """Called within the batch, after its last step."""
        begun = time.monotonic()
        cpu_s = processes.cpu_s(self.broker_pid) - self._cpu_mark_s
        whole_s = self._last_whole_s()
        if report.stamp.batch_id == 0:
            self.first_s = report.seconds
        elif report.stamp.batch_id > self.warm_up:
            self.reports.append(report)
            self.cpu_s.append(cpu_s)
            # What Spark says of a batch is known one batch later.
            if len(self.reports) > 1:
                self.whole_s.append(whole_s)
        self._say(report, cpu_s)
        self.peak_mib = processes.peak_mib(self.broker_pid)
        if len(self.reports) > self.batches:
            self.end()
        else:
            if report.stamp.batch_id == self.warm_up:
                self.warm()
            self.commits = self.load.advance()
        self._cpu_mark_s = processes.cpu_s(self.broker_pid)
        self._extra_s = report.waited_s + time.monotonic() - begun

    def figures(self) -> dict[str, Any]:
        """Seconds are p50 and p95 over the measured batches."""
        counted = self.reports[: self.batches]
        steps = {
            name: round(statistics.median(report.seconds_by_step[name] for report in counted), 3)
            for name in counted[0].seconds_by_step
        }
        return {
            "rows": self.load.rows,
            "partitions_asked": self.load.asked,
            "groups": self.load.groups,
            "commits_per_batch": self.commits,
            "batches": len(counted),
            "first_batch_s": round(self.first_s, 2),
            "whole_p50_s": round(p(self.whole_s, 50), 2),
            "whole_p95_s": round(p(self.whole_s, 95), 2),
            "steps_p50_s": round(p([report.seconds for report in counted], 50), 2),
            "without_plan_and_history_p50_s": round(
                p([report.seconds - _now_and_then_s(report) for report in counted], 50), 2
            ),
            "cpu_s_p50": round(p(self.cpu_s, 50), 2),
            "seconds_by_step": steps,
            "published": sum(report.published for report in counted),
            "peak_mib": self.peak_mib,
            "load_average_1m_at_end": round(os.getloadavg()[0], 2),
        }

    def _last_whole_s(self) -> float:
        """Trigger to commit of the batch before, by Spark's own report, without its wait and the traffic made in it."""
        progress = SparkSession.builder.getOrCreate().streams.active[0].lastProgress
        return progress.durationMs["triggerExecution"] / 1000 - self._extra_s if progress else 0.0

    def _say(self, report: Report, cpu_s: float) -> None:
        steps = {
            name: round(seconds, 2) for name, seconds in report.seconds_by_step.items() if seconds >= 0.01
        }
        self.say(
            f"batch {report.stamp.batch_id}: {report.seconds:.2f} s, {cpu_s:.1f} s of processor, {steps}"
        )


def _now_and_then_s(report: Report) -> float:
    return sum(report.seconds_by_step[name] for name in _ONLY_NOW_AND_THEN)


@contextmanager
def _tables(folder: Path, *, in_bucket: bool) -> Iterator[tuple[TablesConfig, StoreProxy | None]]:
    if not in_bucket:
        yield TablesConfig(root=str(folder / "tables")), None
        return
    with object_store(folder / "store") as store, StoreProxy(store.port) as proxy:
        tables = TablesConfig(
            root=f"s3://{BUCKET}/lagwise",
            checkpoint=str(folder / "checkpoint"),
            storage_options=store.options_by(proxy.endpoint),
        )
        yield tables, proxy


def _config(bootstrap: str, tables: TablesConfig, driver_memory: str) -> Config:
    return Config(
        kafka=KafkaConfig(properties={"bootstrap.servers": bootstrap, "log_level": "0"}),
        tables=tables,
        trigger=TriggerConfig(interval_s=1),
        history=HistoryConfig(interval_s=1, max_gap_s=1),
        plan=eager_plan(dry_run=False),
        spark={"spark.driver.memory": driver_memory},
    )
