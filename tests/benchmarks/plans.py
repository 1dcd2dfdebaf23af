"""Decisions about many groups at once, from the tables to rows: all of a batch's planning but its writes.

Before plans are published, all lagging groups are searched for one, evaluation by evaluation; after that most of them
wait for their members.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from pipeline.config.model import PlanConfig
from pipeline.local.jars import resolve_for_spark
from pipeline.planning.memory import PlanMemory
from pipeline.planning.step import PlanSettings
from pipeline.planning.values import Published
from pipeline.run.batch.plans.deciding import decide_all
from pipeline.run.spark.session import PACKAGES, build_session
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.benchmarks import processes
from tests.benchmarks.plan_tables import PlanTables
from tests.support.job.batches import idle_driver

Say = Callable[[str], None]

_CORES = 2
_BEFORE_PLANS, _AFTERWARDS = 3, 4
"""Evaluations: settling and confirmations take two, and the third publishes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """So many groups, and what each reads."""

    groups: int
    topics: int
    partitions: int
    topics_each: int
    goal_s: float

    def measure(self, say: Say, *, quick: bool) -> dict[str, Any]:
        """Seconds of an evaluation of all groups, before and after plans are published."""
        world = PlanTables(
            groups=self.groups // 20 if quick else self.groups,
            topics=self.topics,
            partitions=self.partitions,
            topics_each=self.topics_each,
        )
        memory = PlanMemory()
        jars = resolve_for_spark(PACKAGES)
        spark = build_session({"spark.master": f"local[{_CORES}]", "spark.driver.memory": "2g"}, jars=jars)
        with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as root:
            create_tables(root, retention_hours=1, storage_options={})
            store = Store(root, term=1)
            rounds = [
                _round(spark, store, world, memory, number) for number in range(_BEFORE_PLANS + _AFTERWARDS)
            ]
            for one in rounds:
                say(f"{world.groups} groups, {world.rows} rows: {one}")
        spark.stop()
        # The first one starts the workers.
        before, after = rounds[1:_BEFORE_PLANS], rounds[_BEFORE_PLANS:]
        figures = {
            "groups": world.groups,
            "rows": world.rows,
            "first_s": rounds[0]["seconds"],
            "looking_for_plans_s": round(statistics.median(one["seconds"] for one in before), 2),
            "steady_s": round(statistics.median(one["seconds"] for one in after), 2),
            "steady_cpu_s": round(statistics.median(one["cpu_s"] for one in after), 2),
        }
        row = [self.goal_s, *figures.values()]
        return figures | {
            "rounds": rounds,
            "tables": [{"header": ["plans, goal s", *figures], "rows": [row]}],
        }


SIZES = {
    "plans-5k-groups": Size(groups=5000, topics=500, partitions=20, topics_each=3, goal_s=5),
    "plans-1k-groups": Size(groups=1000, topics=50, partitions=100, topics_each=10, goal_s=3),
}


def _round(
    spark: SparkSession, store: Store, world: PlanTables, memory: PlanMemory, number: int
) -> dict[str, Any]:
    """One evaluation of all groups, a minute after the one before; remembered."""
    world.a_minute_later()
    for name, rows in world.tables().items():
        store.write(name, rows, Stamp(batch_id=number, at_ms=world.now_ms))
    cpu_s, begun = processes.cpu_s(), time.perf_counter()
    driver = idle_driver(spark=spark, store=store, memory=memory)
    decided = decide_all(driver, _settings(world, number), only=None)
    seconds, cpu_s = time.perf_counter() - begun, processes.cpu_s() - cpu_s
    _remember(memory, decided)
    counts = decided["decision"].value_counts().to_pylist()
    return {
        "seconds": round(seconds, 2),
        "cpu_s": round(cpu_s, 2),
        "decisions": {one["values"]: one["counts"] for one in counts},
    }


def _settings(world: PlanTables, number: int) -> PlanSettings:
    return PlanSettings(
        cluster="bench",
        config=PlanConfig(dry_run=False),
        half_life_ms=120_000,
        max_record_bytes=1_000_000,
        batch_interval_s=30,
        at_ms=world.now_ms,
        now_ms=world.now_ms,
        batch_id=number,
        least_epoch=world.now_ms // 1000,
        behind=(),
        provisional_reason=None,
        migration="disabled",
    )


def _remember(memory: PlanMemory, decided: pa.Table) -> None:
    """As the job does once plans are published."""
    for row in decided.to_pylist():
        memory.states[row["group_id"]] = row["state"]
        if row["epoch"] is not None:
            memory.published[row["group_id"]] = _published(row)


def _published(row: Mapping[str, Any]) -> Published:
    return Published(
        epoch=row["epoch"],
        target_hash=row["target_hash"],
        base_hash=row["base_hash"],
        valid_until_ms=round(row["valid_until"].timestamp() * 1000),
    )
