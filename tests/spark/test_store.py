"""Tables: made once, written once per batch, by one driver."""

import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.errors import FencedError, StoreError
from pipeline.tables import maintenance, ownership
from pipeline.tables import store as store_module
from pipeline.tables.creation import create_tables
from pipeline.tables.schemas import TABLES
from pipeline.tables.store import Stamp, Store
from tests.support.frames import NOW_MS, at, member, picked, stored_groups
from tests.support.waiting import wait_until

STAMP = Stamp(query_id="q", batch_id=3, at_ms=NOW_MS, behind=(1, 2), reason="not read yet")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("store"))
    create_tables(path, retention_hours=1, storage_options={})
    return path


def driver(spark: SparkSession, root: str, name: str) -> Store:
    return ownership.acquire(Store(spark, root, term=0), cluster="local", owner=name, now_ms=NOW_MS)


def bad_rows(spark: SparkSession, *offsets: int) -> DataFrame:
    rows = spark.createDataFrame([(o,) for o in offsets], "offset long")
    nothing = {name: F.lit(None).cast("binary") for name in ("key", "value")}
    return rows.withColumns(
        {
            "cluster": F.lit("local"),
            "topic": F.lit("t"),
            "partition": F.lit(0),
            "kind": F.lit("unknown_type"),
            "reason": F.lit("why"),
            "timestamp": F.timestamp_millis(F.lit(NOW_MS)),
            "updated_at": F.timestamp_millis(F.lit(NOW_MS)),
            "batch_id": F.lit(3).cast("long"),
            **nothing,
        }
    )


def test_every_table_has_its_columns_commented_and_plain_features(root: str) -> None:
    for table in TABLES:
        stored = DeltaTable(f"{root}/{table.name}")
        assert [field.name for field in stored.schema().fields] == table.schema.fieldNames()
        assert all(field.metadata.get("comment") for field in stored.schema().fields)
        assert stored.protocol().min_reader_version == 1


def test_making_the_tables_again_changes_nothing(root: str) -> None:
    create_tables(root, retention_hours=1, storage_options={})
    before = DeltaTable(f"{root}/partition_lag").version()

    create_tables(root, retention_hours=1, storage_options={})

    assert DeltaTable(f"{root}/partition_lag").version() == before


def test_new_retention_reaches_the_tables(root: str) -> None:
    create_tables(root, retention_hours=2, storage_options={})

    properties = DeltaTable(f"{root}/lag_history").metadata().configuration
    assert properties["delta.deletedFileRetentionDuration"] == "interval 120 minutes"


def test_table_of_another_shape_is_named(spark: SparkSession, tmp_path: Path) -> None:
    other = spark.createDataFrame([("x",)], "cluster string")
    other.write.format("delta").save(str(tmp_path / "partition_lag"))

    with pytest.raises(StoreError, match=r"table partition_lag .*group_id \(missing\).*empty folder"):
        create_tables(str(tmp_path), retention_hours=1, storage_options={})


def test_newer_driver_fences_the_older_one_inside_the_write(spark: SparkSession, root: str) -> None:
    old = driver(spark, root, "old")
    new = driver(spark, root, "new")

    old.write("quarantine", bad_rows(spark, 666), STAMP)
    new.write("quarantine", bad_rows(spark, 1), STAMP)

    assert (666,) not in picked(new.read("quarantine"), "offset")
    assert (1,) in picked(new.read("quarantine"), "offset")
    ownership.check(new, "new")
    with pytest.raises(FencedError, match="belong to driver new"):
        ownership.check(old, "old")


@pytest.mark.parametrize("slow_one", ["old", "new"])
def test_drivers_that_write_at_the_same_moment_end_with_the_newer_ones_rows(
    slow_one: str, spark: SparkSession, tmp_path: Path
) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    terms = (1, 2) if slow_one == "old" else (2, 1)
    slow, fast = (Store(spark, str(tmp_path), term=term) for term in terms)
    begun, may_end = tmp_path / "begun", tmp_path / "may_end"

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(slow.write, "quarantine", _slowly(bad_rows(spark, 1), begun, may_end), STAMP)
        wait_until(begun.exists, what="a write under way", within_s=60)
        fast.write("quarantine", bad_rows(spark, 2), STAMP)
        may_end.touch()
        writing.result()

    written = picked(fast.read("quarantine"), "offset")
    assert written == ([(2,)] if slow_one == "old" else [(1,), (2,)])


@pytest.mark.parametrize("looked", ["after", "before"])
def test_term_is_never_made_known_after_a_later_one(
    looked: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    old, new = (Store(spark, str(tmp_path), term=term) for term in (1, 2))
    stale = {table.name: DeltaTable(new.path(table.name)) for table in TABLES}
    new.touch()
    if looked == "before":
        monkeypatch.setattr(old, "_handle", lambda name: stale.pop(name, None) or DeltaTable(old.path(name)))

    old.touch()

    seen = [DeltaTable(new.path(table.name)).transaction_version("lagwise") for table in TABLES]
    assert seen == [2 * 2**32] * len(TABLES)


def _slowly(rows: DataFrame, begun: Path, may_end: Path) -> DataFrame:
    """The same rows, which do not come before the file `may_end` is there."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begun.touch()
        while not may_end.exists():
            threading.Event().wait(0.02)
        yield from batches

    return rows.coalesce(1).mapInArrow(work, rows.schema)


def test_tables_of_another_cluster_are_refused(spark: SparkSession, root: str) -> None:
    driver(spark, root, "first")

    with pytest.raises(StoreError, match="belong to cluster 'local', and this driver runs for 'other'"):
        ownership.acquire(Store(spark, root, term=0), cluster="other", owner="second", now_ms=NOW_MS)


def test_batch_that_runs_twice_under_one_term_writes_once(spark: SparkSession, root: str) -> None:
    store = driver(spark, root, "twice")

    for _ in range(2):
        store.write("quarantine", bad_rows(spark, 2), STAMP)

    assert picked(store.read("quarantine").where("offset = 2"), "offset") == [(2,)]


def test_stamp_survives_maintenance_and_tells_batch_and_clock(spark: SparkSession, root: str) -> None:
    store = driver(spark, root, "stamped")
    store.write("quarantine", bad_rows(spark, 3), STAMP)

    maintenance.run(root, at_ms=time.time_ns() // 1_000_000, keep_days=10_000, storage_options={})

    assert store.stamp("quarantine") == STAMP
    assert STAMP.is_batch("q", 3)
    assert not STAMP.is_batch("q", 4)
    assert not STAMP.is_batch("other", 3)


def test_stamp_is_found_behind_any_number_of_starts_without_a_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    Store(spark, str(tmp_path), term=1).write("quarantine", bad_rows(spark, 3), STAMP)
    monkeypatch.setattr(store_module, "TABLES", [table for table in TABLES if table.name == "quarantine"])

    for term in range(2, 62):
        Store(spark, str(tmp_path), term=term).touch()

    assert DeltaTable(f"{tmp_path}/quarantine").version() == 61
    assert Store(spark, str(tmp_path), term=62).stamp("quarantine") == STAMP


def test_table_that_no_batch_wrote_has_no_stamp(spark: SparkSession, root: str) -> None:
    assert driver(spark, root, "fresh").stamp("consumer_groups") is None


def test_maintenance_leaves_no_checksum_of_a_file_that_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(spark, str(tmp_path), term=1)
    for batch_id in range(2):
        store.write("consumer_groups", stored_groups(spark, {}), replace(STAMP, batch_id=batch_id))
    table = tmp_path / "consumer_groups"
    (live,) = DeltaTable(str(table)).file_uris()
    gone = [file for file in table.glob("*.parquet") if file.name != Path(live).name]
    # As when their retention is over: the replaced file of the first driver, and the oldest version of the log.
    for file in [*gone, table / "_delta_log" / f"{0:020}.json"]:
        file.unlink()

    maintenance.run(str(tmp_path), at_ms=NOW_MS, keep_days=10_000, storage_options={})

    left = {file.relative_to(table).as_posix() for file in table.rglob("*.crc")}
    assert gone
    assert not {f".{file.name}.crc" for file in gone} & left
    assert not {f"_delta_log/{name}.crc" for name in (f"{0:020}", f".{0:020}.json", f".{0:020}.crc")} & left
    assert f".{Path(live).name}.crc" in left
    assert f"_delta_log/.{1:020}.json.crc" in left


def test_maintenance_removes_replaced_files_and_rows_past_their_days_and_spark_reads_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    create_tables(str(tmp_path), retention_hours=0, storage_options={})
    store = driver(spark, str(tmp_path), "keeper")
    for offset in range(3):
        stamp = Stamp(query_id="q", batch_id=offset, at_ms=NOW_MS, behind=(), reason=None)
        store.write("quarantine", bad_rows(spark, offset), stamp)
    day_ms = 86_400_000

    maintenance.run(str(tmp_path), at_ms=NOW_MS + 5 * day_ms, keep_days=6, storage_options={})
    kept = picked(store.read("quarantine"), "offset")
    maintenance.run(str(tmp_path), at_ms=NOW_MS + 8 * day_ms, keep_days=6, storage_options={})

    assert kept == [(0,), (1,), (2,)]
    assert picked(store.read("quarantine"), "offset") == []
    store.write(
        "quarantine",
        bad_rows(spark, 9),
        Stamp(query_id="q", batch_id=9, at_ms=NOW_MS, behind=(), reason=None),
    )
    assert picked(store.read("quarantine"), "offset") == [(9,)]


def test_spark_and_delta_rs_see_each_others_rows_and_terms(spark: SparkSession, tmp_path: Path) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    old, new = (Store(spark, str(tmp_path), term=term) for term in (1, 2))
    rows = {offset: bad_rows(spark, offset) for offset in range(4)}

    new.write("quarantine", rows[0], STAMP)
    old.write_arrow("quarantine", rows[1].toArrow(), STAMP)
    new.write_arrow("quarantine", rows[2].toArrow(), replace(STAMP, batch_id=4))
    old.write("quarantine", rows[3], replace(STAMP, batch_id=5))
    new.write("quarantine", rows[3], replace(STAMP, batch_id=4))

    assert picked(new.read("quarantine"), "offset") == [(0,), (2,)]
    assert new.stamp("quarantine") == replace(STAMP, batch_id=4)


@pytest.mark.parametrize("writer", ["delta-rs", "Apache-Spark"])
def test_rows_are_the_same_whoever_writes_them(spark: SparkSession, tmp_path: Path, writer: str) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(spark, str(tmp_path), term=1)
    members = [member("m", topics=["t", "u"], owned={"t": [0]}, assigned={"t": [0, 2], "u": []}), member("n")]
    rows = stored_groups(spark, {"state": "Stable", "generation": 4, "members": members})

    if writer == "delta-rs":
        store.write_arrow("consumer_groups", rows.toArrow(), STAMP)
    else:
        store.write("consumer_groups", rows, STAMP)

    (row,) = store.read("consumer_groups").collect()
    assert [one.asDict() for one in row.members] == members
    assert (row.generation, row.updated_at) == (4, at(-10).replace(tzinfo=None))
    newest = DeltaTable(store.path("consumer_groups")).history(1)[0]
    assert str(newest.get("engineInfo") or newest.get("clientVersion")).startswith(writer)
    assert store.stamp("consumer_groups") == STAMP


def test_latest_table_of_an_earlier_version_is_read_without_what_it_had_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(spark, str(tmp_path), term=1)
    rows = stored_groups(spark, {"leader": "m"}).drop("leader")
    rows.write.format("delta").mode("append").save(store.path("consumer_groups"))

    assert picked(store.read("consumer_groups"), "group_id", "leader") == [("g", None)]
