"""`tables.catalog`: what the job enters into the catalog of its session, and what it leaves alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from pipeline.config.model import TablesConfig
from pipeline.errors import ConfigError
from pipeline.run.spark import catalog
from pipeline.run.spark.catalog import register_tables
from pipeline.tables.schemas import TABLES
from pipeline.tables.upkeep.creation import create_tables

_NAME = "lags_of_tests"


@pytest.fixture(autouse=True)
def database(spark: SparkSession) -> Iterator[None]:
    yield
    spark.sql(f"DROP DATABASE IF EXISTS {_NAME} CASCADE")


@pytest.fixture
def config(tmp_path: Path) -> TablesConfig:
    return _tables(tmp_path / "it's here")


def _tables(root: Path, catalog: str = _NAME) -> TablesConfig:
    create_tables(str(root), retention_hours=1, storage_options={})
    return TablesConfig(root=str(root), catalog=catalog)


def _entered(spark: SparkSession) -> set[str]:
    return {row.tableName for row in spark.sql(f"SHOW TABLES IN {_NAME}").collect()}


def test_tables_are_registered_with_the_comments_of_their_columns(
    spark: SparkSession, config: TablesConfig
) -> None:
    register_tables(spark, config)

    assert _entered(spark) == {table.name for table in TABLES}
    comments = {row.col_name: row.comment for row in spark.sql(f"DESCRIBE {_NAME}.acks").collect()}
    assert comments["kind"] == "accepted, refused, release, taken, applied or void"
    assert spark.table(f"{_NAME}.lag_history").count() == 0


def test_registering_commits_nothing_and_is_done_once(spark: SparkSession, config: TablesConfig) -> None:
    register_tables(spark, config)
    register_tables(spark, config)

    assert {DeltaTable(f"{config.root}/{table.name}").version() for table in TABLES} == {0}


def test_place_without_a_table_is_refused_and_stays_empty(spark: SparkSession, config: TablesConfig) -> None:
    empty = Path(config.root).with_name("another")
    empty.mkdir()

    with pytest.raises(ConfigError, match=r"there is no table at file:.*/another/partition_lag"):
        register_tables(spark, TablesConfig(root=str(empty), catalog=_NAME))

    assert not list(empty.iterdir())
    assert not spark.catalog.databaseExists(_NAME)


def test_database_that_is_dropped_leaves_the_tables(spark: SparkSession, config: TablesConfig) -> None:
    register_tables(spark, config)

    spark.sql(f"DROP DATABASE {_NAME} CASCADE")

    assert DeltaTable(f"{config.root}/acks").version() == 0


def test_table_that_lies_elsewhere_stays_and_is_named_and_nothing_else_is_registered(
    spark: SparkSession, config: TablesConfig, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    spark.sql(f"CREATE DATABASE {_NAME}")
    spark.sql(f"CREATE TABLE {_NAME}.quarantine (mine INT) USING DELTA LOCATION '{other}'")

    with pytest.raises(ConfigError, match=rf"^tables.catalog: {_NAME}.quarantine is at file:{other}, but"):
        register_tables(spark, config)

    assert _entered(spark) == {"quarantine"}
    assert spark.table(f"{_NAME}.quarantine").columns == ["mine"]


def test_view_of_such_a_name_stays_and_is_named(spark: SparkSession, config: TablesConfig) -> None:
    spark.sql(f"CREATE DATABASE {_NAME}")
    spark.sql(f"CREATE VIEW {_NAME}.acks AS SELECT 1 AS mine")

    with pytest.raises(ConfigError, match=r"acks is a view, but"):
        register_tables(spark, config)

    assert spark.table(f"{_NAME}.acks").columns == ["mine"]


def test_without_the_key_nothing_is_registered(spark: SparkSession, tmp_path: Path) -> None:
    before = {row.namespace for row in spark.sql("SHOW DATABASES").collect()}

    register_tables(spark, _tables(tmp_path, catalog=""))

    assert {row.namespace for row in spark.sql("SHOW DATABASES").collect()} == before


def test_catalog_that_refuses_does_not_keep_the_stream_from_starting(
    spark: SparkSession,
    config: TablesConfig,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def _is_away(*_args: object) -> None:
        raise AnalysisException("the metastore is away")

    monkeypatch.setattr(catalog, "register", _is_away)

    register_tables(spark, config)

    (said,) = [record for record in caplog.records if "could not be registered" in record.message]
    assert said.__dict__["database"] == _NAME
