"""Plans of many groups: by one task as by many."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pipeline import task_sizes
from pipeline.arrow_stream import unpacked
from pipeline.planning.memory import PlanMemory
from pipeline.planning.values import Published
from pipeline.run.batch.plans import deciding
from pipeline.run.driver import Driver
from pipeline.run.tasks.deciding import READS, DecidingTask, share
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.batches import idle_driver, stamp_of
from tests.support.job.frames import NOW_MS, arrow, at, member
from tests.support.planning.settings import SETTINGS
from tests.support.spark.spark_jobs import SparkJob, jobs_of

DIED = "the task that plans the group has failed 3 times: the planner ended its process"
GROUPS = [f"g{number}" for number in range(7)]
MEMORY = PlanMemory(
    published={
        name: Published(epoch=10 + at, target_hash="", base_hash="", valid_until_ms=0)
        for at, name in enumerate(GROUPS)
    }
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Seven groups of one topic, that of number n with a lag of its own; and one without members."""
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store, stamp = Store(str(tmp_path), term=1), stamp_of(batch_id=7, at_ms=NOW_MS)
    group: dict[str, Any] = {
        "state": "Stable",
        "protocol_type": "consumer",
        "assignor": "range",
        "generation": 4,
        "members": [member("a", assigned={"t": [0, 1]}), member("b", assigned={"t": [2, 3]})],
    }
    log = {"log_start_offset": 0, "log_end_offset": 1000, "observed_at": at(0), "arrival_rate": 0.0}
    lags = [
        {"group_id": name, "partition": n, "committed_offset": 1000 - lag, "lag": lag}
        for at_group, name in enumerate([*GROUPS, "assigns"])
        for n, lag in enumerate((900, 800 - at_group, 10, 0))
    ]
    rows = {
        "consumer_groups": [group | {"group_id": name} for name in GROUPS],
        "topic_offsets": [log | {"partition": n} for n in range(4)],
        "partition_lag": lags,
        "orders": [
            {"group_id": "g3", "paused": True, "pinned": {}, "ordered_by": "eva", "ordered_at": at(0)}
            | {"position": 1}
        ],
    }
    for name, given in rows.items():
        store.write(name, arrow(name, *given), stamp)
    return store


@pytest.mark.parametrize("tasks", [1, 2, 5])
def test_groups_are_decided_about_in_the_same_way_however_many_shares_there_are(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch, tasks: int
) -> None:
    here = plan_here(store)
    monkeypatch.setattr(task_sizes, "_LEAST_PARTITIONS", 1)
    monkeypatch.setattr(Driver, "parallelism", tasks)
    there = pa.table({})

    def decide() -> None:
        nonlocal there
        there = decided(spark, store)

    assert jobs_of(spark, decide) == [
        SparkJob("batch 7 · decide 8 groups", min(tasks, spark.sparkContext.defaultParallelism))
    ]

    assert there.to_pylist() == here.to_pylist()
    assert there.schema == here.schema
    by_group = {row["group_id"]: row for row in here.to_pylist()}
    assert sorted(by_group) == sorted([*GROUPS, "assigns"])
    assert {name: row["epoch"] for name, row in by_group.items() if row["epoch"]} == {
        name: 11 + at for at, name in enumerate(GROUPS) if name != "g3"
    }
    assert "paused by eva" in by_group["g3"]["reason"]


def test_task_hands_on_all_its_decisions_as_one_row(store: Store) -> None:
    (handed_on,) = task_of(store)([share(GROUPS[4:], MEMORY)])

    assert handed_on.num_rows == 1
    assert unpacked(handed_on["decided"][0])["group_id"].to_pylist() == GROUPS[4:]


def test_one_group_alone_is_decided_about_when_nobody_else_is_in_need(
    spark: SparkSession, store: Store
) -> None:
    alone = decided(spark, store, only=("g2",)).to_pylist()

    assert alone == [row for row in decided(spark, store).to_pylist() if row["group_id"] == "g2"]


def test_no_job_is_started_for_no_group(spark: SparkSession, store: Store) -> None:
    assert jobs_of(spark, lambda: decided(spark, store, only=("nobody",))) == []
    assert decided(spark, store, only=("nobody",)).equals(plan_here(store).slice(0, 0))


class DyingTask(DecidingTask):
    """The first attempt takes its process with it."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            os._exit(7)
        return super().__call__(batches)


def test_task_whose_process_dies_while_it_decides_is_tried_again(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deciding, "DecidingTask", DyingTask)

    assert decided(spark, store).equals(plan_here(store))


class DeadlyPlanner(DecidingTask):
    """The planner ends its process whenever it plans group g3."""

    def _decide(self, group_ids: list[str], memory: PlanMemory) -> pa.Table:
        if "g3" in group_ids:
            os._exit(7)
        return super()._decide(group_ids, memory)


@pytest.mark.parametrize("tasks", [1, 2])
def test_planner_that_always_ends_its_process_costs_the_groups_of_its_task_their_plan_and_nothing_else(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch, tasks: int
) -> None:
    monkeypatch.setattr(deciding, "DecidingTask", DeadlyPlanner)
    monkeypatch.setattr(task_sizes, "_LEAST_PARTITIONS", 1)
    monkeypatch.setattr(Driver, "parallelism", tasks)
    calm = {row["group_id"]: row for row in plan_here(store).to_pylist()}

    there = {row["group_id"]: row for row in decided(spark, store).to_pylist()}

    assert there.keys() == calm.keys()
    left = {name for name, row in there.items() if str(row["reason"]).startswith(DIED)}
    assert {there[name]["decision"] for name in left} == {"abstain"}
    assert {there[name]["epoch"] for name in left} == {None}
    assert "g3" in left
    # Of two tasks the other one has the rest.
    assert (len(left) == len(calm)) is (tasks == 1)
    assert [row for name, row in there.items() if name not in left] == [
        row for name, row in calm.items() if name not in left
    ]


def test_group_without_a_plan_for_that_reason_keeps_what_is_remembered_of_it(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = decided(spark, store, only=("g3",)).to_pylist()[0]["state"]
    monkeypatch.setitem(MEMORY.states, "g3", before)
    monkeypatch.setattr(deciding, "DecidingTask", DeadlyPlanner)

    (row,) = decided(spark, store, only=("g3",)).to_pylist()

    assert row["reason"].startswith(DIED)
    assert row["state"] == before


def task_of(store: Store) -> DecidingTask:
    return DecidingTask(storage_options={}, reads=store.files(READS), settings=SETTINGS, attempts=4)


def plan_here(store: Store) -> pa.Table:
    """What one task decides, in this process."""
    (row,) = task_of(store)([share([*GROUPS, "assigns"], MEMORY)])
    return unpacked(row["decided"][0]).sort_by("group_id")


def decided(spark: SparkSession, store: Store, only: tuple[str, ...] | None = None) -> pa.Table:
    return deciding.decide_all(idle_driver(store=store, spark=spark, memory=MEMORY), SETTINGS, only=only)
