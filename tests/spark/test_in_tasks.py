"""How the ranges of a large table are shared out among tasks."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pipeline.run.batch import in_tasks
from pipeline.run.batch.in_tasks import Folding, write_folded
from pipeline.tables.creation import create_tables
from pipeline.tables.reading import Tables
from pipeline.tables.store import Store
from tests.support.batches import batch_of, idle_driver, stamp_of
from tests.support.frames import arrow

GROUPS = ("a", "b", "c", "d")
LARGE = "spark.sql.execution.arrow.localRelationThreshold"
"""Bytes from which Spark takes what it is given batch by batch: 48 MB, unless told otherwise."""


def test_ranges_are_shared_out_also_when_a_batch_brings_much(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(str(tmp_path), term=1)
    monkeypatch.setattr(in_tasks, "FEW_ROWS", 0)
    monkeypatch.setattr(in_tasks, "_MOST_ROWS_A_TASK", 1)

    def by_task(_tables: Tables, new: pa.Table, _where: pc.Expression | None) -> pa.Table:
        context = TaskContext.get()
        number = pa.scalar(context.partitionId() if context else -1, pa.int32())
        at = new.schema.get_field_index("partition")
        return new.set_column(at, "partition", pa.repeat(number, new.num_rows))

    batch = batch_of(idle_driver(store=store, spark=spark), stamp=stamp_of())
    folding = Folding(name="partition_lag", key="group_id", fold=by_task)
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
