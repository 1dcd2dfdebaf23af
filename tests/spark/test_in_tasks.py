"""How the ranges of a table are shared out among tasks."""

import gc
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pipeline import task_sizes
from pipeline.run.batch.in_tasks import Folding, write_folded
from pipeline.run.batch.lag import store_history
from pipeline.tables.reading import Tables
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.batches import batch_of, idle_driver, stamp_of
from tests.support.job.frames import arrow, at
from tests.support.spark.spark_jobs import SparkJob, jobs_of

GROUPS = ("a", "b", "c", "d")
LARGE = "spark.sql.execution.arrow.localRelationThreshold"
"""Bytes from which Spark takes what it is given batch by batch: 48 MB, unless told otherwise."""


def test_ranges_are_shared_out_also_when_a_batch_brings_much(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(str(tmp_path), term=1)
    monkeypatch.setattr(task_sizes, "_MOST_ROWS", 1)

    def by_task(_tables: Tables, new: pa.Table, _where: pc.Expression | None) -> pa.Table:
        context = TaskContext.get()
        number = pa.scalar(context.partitionId() if context else -1, pa.int32())
        at = new.schema.get_field_index("partition")
        return new.set_column(at, "partition", pa.repeat(number, new.num_rows))

    batch = batch_of(idle_driver(store=store, spark=spark), stamp=stamp_of())
    folding = Folding(name="partition_lag", key="group_id", reads=(), fold=by_task)
    new = arrow("partition_lag", *({"group_id": group} for group in GROUPS))
    spark.conf.set(LARGE, 1)
    try:
        write_folded(batch, folding, new, dict.fromkeys(GROUPS, 1))
    finally:
        spark.conf.unset(LARGE)

    rows = store.arrow("partition_lag", ["group_id", "partition"]).to_pylist()
    tasks = {row["group_id"]: row["partition"] for row in rows}
    assert sorted(tasks) == list(GROUPS)
    assert len(set(tasks.values())) == len(GROUPS)


def died(_tables: Tables, new: pa.Table, _where: pc.Expression | None) -> pa.Table:
    """The rows; the first attempt of each task takes its process with it."""
    context = TaskContext.get()
    if context is not None and context.attemptNumber() == 0:
        os._exit(7)
    return new


def test_task_whose_process_dies_is_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(str(tmp_path), term=1)
    batch = batch_of(idle_driver(store=store, spark=spark), stamp=stamp_of())
    new = arrow("partition_lag", *({"group_id": group} for group in GROUPS))

    write_folded(
        batch,
        Folding(name="partition_lag", key="group_id", reads=(), fold=died),
        new,
        dict.fromkeys(GROUPS, 1),
    )

    assert sorted(store.arrow("partition_lag", ["group_id"])["group_id"].to_pylist()) == list(GROUPS)


@pytest.mark.parametrize("due", [("b", "c"), ()])
def test_history_gets_the_rows_that_are_due_once(
    spark: SparkSession, tmp_path: Path, due: tuple[str, ...]
) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(str(tmp_path), term=1)
    batch = batch_of(idle_driver(store=store, spark=spark), stamp=stamp_of())
    lags = (
        {"group_id": group, "updated_at": at(0), "history_at": at(0 if group in due else -60)}
        for group in GROUPS
    )
    store.write("partition_lag", arrow("partition_lag", *lags), batch.stamp)

    for _ in range(2):
        store_history(batch)

    rows = store.rows("lag_history", ["group_id", "date"])
    assert sorted(row["group_id"] for row in rows) == sorted(due)
    assert {row["date"] for row in rows} <= {at(0).date()}
    assert store.stamp("lag_history") == (batch.stamp if due else None)


def nothing(_tables: Tables, new: pa.Table, _where: pc.Expression | None) -> pa.Table:
    """No row."""
    return new.slice(0, 0)


def test_table_without_rows_has_the_stamp_of_the_batch_all_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(str(tmp_path), term=1)
    batch = batch_of(idle_driver(store=store, spark=spark), stamp=stamp_of(tick=9))

    write_folded(
        batch,
        Folding(name="partition_lag", key="group_id", reads=(), fold=nothing),
        arrow("partition_lag"),
        {},
    )

    assert store.stamp("partition_lag") == batch.stamp
    assert store.arrow("partition_lag").num_rows == 0


def frozen(_tables: Tables, new: pa.Table, _where: pc.Expression | None) -> pa.Table:
    """The rows; `partition` is how many objects no collection of garbage looks at."""
    column = new.column_names.index("partition")
    count = pa.repeat(pa.scalar(gc.get_freeze_count(), pa.int32()), new.num_rows)
    return new.set_column(column, "partition", count)


def test_worker_looks_for_no_garbage_in_what_was_imported_for_it(spark: SparkSession, tmp_path: Path) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(str(tmp_path), term=1)
    batch = batch_of(idle_driver(store=store, spark=spark), stamp=stamp_of())
    new = arrow("partition_lag", {"group_id": "g"})

    jobs = jobs_of(
        spark,
        lambda: write_folded(
            batch, Folding(name="partition_lag", key="group_id", reads=(), fold=frozen), new, {"g": 1}
        ),
    )

    assert jobs == [SparkJob("batch 5 · fold partition_lag", 1)]
    assert store.arrow("partition_lag", ["partition"])["partition"].to_pylist()[0] > 10_000
