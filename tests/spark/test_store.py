"""Spark's own Delta reads what the job writes, and leaves nothing behind that maintenance does not remove."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from pipeline.tables.files import write_file
from pipeline.tables.reading import Tables
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job import maintenance
from tests.support.job.frames import NOW_MS, arrow, at, member, picked

STAMP = Stamp(batch_id=3, at_ms=NOW_MS)
MEMBERS = [member("m", topics=["t", "u"], owned={"t": [0]}, assigned={"t": [0, 2], "u": []}), member("n")]
LAG = {"recent_commits": [(5, 6, 7), (8, 9, None)], "lag": 3, "history_at": at(-10)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    create_tables(str(tmp_path), retention_hours=0, storage_options={})
    return Store(str(tmp_path), term=1)


def seen(spark: SparkSession, store: Store, name: str) -> DataFrame:
    return spark.read.format("delta").load(store.path(name))


def test_spark_reads_members_as_they_were_written(spark: SparkSession, store: Store) -> None:
    fields = {"state": "Stable", "generation": 4, "members": MEMBERS}
    store.write("consumer_groups", arrow("consumer_groups", fields), STAMP)

    (row,) = seen(spark, store, "consumer_groups").collect()

    assert [one.asDict() for one in row.members] == MEMBERS
    assert (row.generation, row.updated_at) == (4, at(-10).replace(tzinfo=None))


@pytest.mark.parametrize("by_files", [False, True])
def test_spark_reads_lags_whoever_has_written_the_file(
    by_files: bool, spark: SparkSession, store: Store
) -> None:
    rows = arrow("partition_lag", LAG, {"group_id": "h"})
    if by_files:
        file = write_file(Tables(store.root), "partition_lag", rows, key="group_id")
        store.write_files("partition_lag", lambda: [file], STAMP)
    else:
        store.write("partition_lag", rows, STAMP)

    lags = seen(spark, store, "partition_lag")

    assert lags.schema.simpleString() == spark.createDataFrame(rows).schema.simpleString()
    first, second = sorted(lags.collect(), key=lambda row: row.group_id)
    assert [tuple(one) for one in first.recent_commits] == LAG["recent_commits"]
    assert (first.lag, first.history_at) == (3, at(-10).replace(tzinfo=None))
    assert (second.lag, second.history_at, second.recent_commits) == (None, None, [])
    assert lags.where("group_id > 'z'").count() == 0


def test_maintenance_leaves_no_checksum_of_a_file_that_is_gone(spark: SparkSession, store: Store) -> None:
    for _ in range(2):
        spark.createDataFrame(arrow("consumer_groups", {})).write.format("delta").mode("overwrite").save(
            store.path("consumer_groups")
        )
    table = Path(store.path("consumer_groups"))
    (live,) = DeltaTable(str(table)).file_uris()
    gone = [file for file in table.glob("*.parquet") if file.name != Path(live).name]
    # As when their retention is over: the replaced file of the first writer, and the oldest version of the log.
    for file in [*gone, table / "_delta_log" / f"{0:020}.json"]:
        file.unlink()

    maintenance.run(store.root, at_ms=NOW_MS, keep_days=10_000, storage_options={})

    left = {file.relative_to(table).as_posix() for file in table.rglob("*.crc")}
    assert gone
    assert not {f".{file.name}.crc" for file in gone} & left
    assert not {f"_delta_log/{name}.crc" for name in (f"{0:020}", f".{0:020}.json", f".{0:020}.crc")} & left
    assert f".{Path(live).name}.crc" in left
    assert f"_delta_log/.{1:020}.json.crc" in left


def test_maintenance_removes_replaced_files_and_rows_past_their_days_and_spark_reads_on(
    spark: SparkSession, store: Store
) -> None:
    for offset in range(3):
        store.write("quarantine", bad(offset), replace(STAMP, batch_id=offset))
    day_ms = 86_400_000

    maintenance.run(store.root, at_ms=NOW_MS + 5 * day_ms, keep_days=6, storage_options={})
    kept = picked(seen(spark, store, "quarantine"), "offset")
    maintenance.run(store.root, at_ms=NOW_MS + 8 * day_ms, keep_days=6, storage_options={})

    assert kept == [(0,), (1,), (2,)]
    assert picked(seen(spark, store, "quarantine"), "offset") == []
    store.write("quarantine", bad(9), replace(STAMP, batch_id=9))
    assert picked(seen(spark, store, "quarantine"), "offset") == [(9,)]


def bad(offset: int) -> Any:
    fields = {"offset": offset, "kind": "unknown_type", "reason": "why", "timestamp": at(0)}
    return arrow("quarantine", fields | {"updated_at": at(0)})
