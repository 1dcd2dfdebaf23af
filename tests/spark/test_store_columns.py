"""Tables of another version of lagwise: columns that may be null are added, what else differs is refused."""

from pathlib import Path

import pytest
from delta.tables import DeltaTable as SparkDeltaTable
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pipeline.errors import StoreError
from pipeline.tables.owner import ownership
from pipeline.tables.schemas import TABLES
from pipeline.tables.store import Stamp, Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.frames import NOW_MS, picked

STAMP = Stamp(batch_id=3, at_ms=NOW_MS, behind=(), reason=None)
SCHEMAS = {table.name: table.schema for table in TABLES}


def driver(root: str) -> Store:
    return ownership.acquire(Store(root, term=0), cluster="local", owner="me", now_ms=NOW_MS)


def older_table(spark: SparkSession, root: str, name: str, *, without: tuple[str, ...]) -> None:
    """A table as a version of lagwise made it that did not know some columns, with a row in it."""
    table = next(table for table in TABLES if table.name == name)
    known = StructType([field for field in table.schema if field.name not in without])
    builder = SparkDeltaTable.create(spark).location(f"{root}/{name}").addColumns(known)
    (builder.partitionedBy(*table.partition_by) if table.partition_by else builder).execute()
    rows = sample_rows(spark, known).write.format("delta").mode("append")
    rows.save(f"{root}/{name}")


def sample_rows(spark: SparkSession, schema: StructType) -> DataFrame:
    """One row with something in each column that must have something."""
    something = {
        StringType(): F.lit("x"),
        IntegerType(): F.lit(1),
        LongType(): F.lit(1).cast("long"),
        BooleanType(): F.lit(True),
        DateType(): F.to_date(F.lit("2026-01-31")),
        TimestampType(): F.timestamp_millis(F.lit(NOW_MS)),
    }
    return spark.range(1).select(
        *(
            (F.lit(None).cast(field.dataType) if field.nullable else something[field.dataType]).alias(
                field.name
            )
            for field in schema
        )
    )


@pytest.mark.parametrize(
    ("name", "new"),
    [
        (
            "partition_lag",
            ("raw_lag", "recent_commits", "history_hash", "trend", "trend_at", "retention_seconds"),
        ),
        (
            "partition_lag",
            (
                *("lag_at_commit", "commit_interval_seconds", "commit_rate", "commit_span_seconds"),
                "least_lag_at_commit",
            ),
        ),
        ("lag_history", ("log_start_offset", "lag_seconds_is_lower_bound", "lag_at_commit")),
        ("group_history", ("joined", "left", "leader")),
    ],
)
def test_columns_that_a_newer_version_has_brought_are_added_and_the_rows_stay(
    spark: SparkSession, tmp_path: Path, name: str, new: tuple[str, ...]
) -> None:
    older_table(spark, str(tmp_path), name, without=new)
    schema = SCHEMAS[name]

    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = driver(str(tmp_path))
    before = store.rows(name, list(new))
    if name != "partition_lag":
        store.write(
            name, sample_rows(spark, schema).withColumn("batch_id", F.lit(7).cast("long")).toArrow(), STAMP
        )

    assert store.arrow(name).column_names == schema.fieldNames()
    assert before == [dict.fromkeys(new)]
    stored = DeltaTable(f"{tmp_path}/{name}")
    assert {field.name for field in stored.schema().fields} == set(schema.fieldNames())
    assert all(field.metadata.get("comment") for field in stored.schema().fields)
    if name != "partition_lag":
        assert sorted(store.arrow(name)["batch_id"].to_pylist()) == [1, 7]


def test_overwriting_a_table_with_added_columns_goes_by_name(spark: SparkSession, tmp_path: Path) -> None:
    older_table(spark, str(tmp_path), "orders", without=("paused", "pinned", "ordered_by"))
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = driver(str(tmp_path))
    schema = SCHEMAS["orders"]
    rows = sample_rows(spark, schema).withColumns({"paused": F.lit(True), "ordered_by": F.lit("ann")})

    store.write("orders", rows.toArrow(), STAMP)

    read = store.rows("orders", ["group_id", "paused", "ordered_by"])
    assert read == [{"group_id": "x", "paused": True, "ordered_by": "ann"}]
    assert picked(spark.read.format("delta").load(store.path("orders")), "paused", "position") == [(True, 1)]


def test_column_that_only_a_later_version_knows_stays_and_is_left_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    path = f"{tmp_path}/quarantine"
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (later string FIRST)")

    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = driver(str(tmp_path))
    store.write("quarantine", sample_rows(spark, SCHEMAS["quarantine"]).toArrow(), STAMP)

    assert "later" not in store.arrow("quarantine").column_names
    assert store.rows("quarantine", ["offset"]) == [{"offset": 1}]
    assert picked(spark.read.format("delta").load(path), "later", "offset") == [(None, 1)]


def test_column_of_a_later_version_that_must_not_be_null_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    orders = SCHEMAS["orders"]
    later = StructType([*orders, StructField("later", StringType(), nullable=False)])
    SparkDeltaTable.create(spark).location(f"{tmp_path}/orders").addColumns(later).execute()

    with pytest.raises(StoreError, match=r"table orders .*: later \(not null\); restore it from a backup"):
        create_tables(str(tmp_path), retention_hours=1, storage_options={})


def test_column_of_another_type_is_refused_and_nothing_is_added(spark: SparkSession, tmp_path: Path) -> None:
    acks = SCHEMAS["acks"]
    other = [
        StructField("epoch", StringType()) if field.name == "epoch" else field
        for field in acks
        if field.name != "why"
    ]
    SparkDeltaTable.create(spark).location(f"{tmp_path}/acks").addColumns(StructType(other)).execute()

    with pytest.raises(StoreError, match=r"table acks .*: epoch \(string\); restore it from a backup"):
        create_tables(str(tmp_path), retention_hours=1, storage_options={})

    assert "why" not in spark.read.format("delta").load(f"{tmp_path}/acks").columns
