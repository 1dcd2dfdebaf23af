"""The resolved jars are enough for a Spark session to write Delta, and their classes are archived."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.local import class_data
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.embedded.config import KAFKA
from pipeline.local.jars import resolve, resolve_for_spark
from pipeline.run.spark.session import PACKAGES, build_session

_FEW = ("spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions")
"""Tasks, of which Spark and Delta begin 200 and 50 by default, however little there is."""


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    """The session of this process, whoever has begun it: all have the same jars."""
    session = build_session({}, jars=resolve_for_spark(PACKAGES))
    before = {name: session.conf.get(name, None) for name in _FEW}
    for name in _FEW:
        session.conf.set(name, "1")
    yield session
    for name, value in before.items():
        session.conf.unset(name) if value is None else session.conf.set(name, value)


def test_session_writes_and_merges_delta_and_starts_from_the_archive_of_its_classes(
    spark: SparkSession, tmp_path: Path
) -> None:
    jars, table = resolve_for_spark(PACKAGES), str(tmp_path / "table")

    rows = spark.range(3)
    rows.write.format("delta").save(table)
    spark.sql(f"merge into delta.`{table}` t using delta.`{table}` s on t.id = s.id when matched then delete")
    merged = spark.read.format("delta").load(table).count()
    rows.write.format("delta").mode("overwrite").option("txnAppId", "a").option("txnVersion", "1").save(table)

    assert (merged, spark.read.format("delta").load(table).count()) == (0, 3)
    assert spark.sparkContext.getConf().get("spark.driver.extraClassPath") == os.pathsep.join(map(str, jars))
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    assert is_mapped(pid, class_data.archive("spark", class_data.spark_class_path(jars)))


def test_broker_starts_from_the_archive_of_its_classes(broker: EmbeddedBroker) -> None:
    assert broker.pid
    assert is_mapped(broker.pid, class_data.archive("kafka", resolve(KAFKA)))


def is_mapped(pid: int, archive: Path) -> bool:
    """Whether the JVM has taken the archive; a test where there is none, or nobody can see, is skipped."""
    file = class_data.found(archive)
    if file is None:
        pytest.skip("this Java made no archive of class data")
    maps = Path(f"/proc/{pid}/maps")
    if not maps.is_file():
        pytest.skip("only Linux says what a process has mapped")
    return str(file) in maps.read_text(encoding="utf-8")


def test_jars_that_pyspark_ships_are_not_there_twice() -> None:
    names = {jar.name.rpartition("-")[0] for jar in resolve_for_spark(PACKAGES)}

    assert names == {"delta-spark_4.2_2.13", "delta-storage"}
