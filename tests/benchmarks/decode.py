"""Decode + latest per key: as arrays alone, through Spark on cached input, and through the broker.

The input is version 4 commits with a topic id, written round by round: every key once, then every key again.
That is the hard order, since an Arrow batch then holds few commits of one key that could be collapsed.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from assignor.protocol.offset_columns import decode_offset_commits, last_per_key
from pipeline import fold
from pipeline.artifacts import resolve_for_spark
from pipeline.config_model import SourceConfig
from pipeline.decode import Filters, decode
from pipeline.decode_talk import TalkTopics
from pipeline.log_offsets import SCHEMA as LOG_OFFSETS_SCHEMA
from pipeline.session import PACKAGES, build_session
from tests.benchmarks.timing import repeat
from tests.support.broker import OFFSETS_PARTITIONS, OFFSETS_TOPIC, create_offsets_topic, small_broker
from tests.support.inject import RawRecord, inject, many_commits

Say = Callable[[str], None]

_ARROW_BATCH = 100_000
_PARTITIONS_OF_A_TOPIC = 100
_RECORD_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value")
_FILTERS = Filters(
    **SourceConfig().model_dump(include=set(Filters.__dataclass_fields__) - {"talk"}),
    talk=TalkTopics(cluster="local", acks="lagwise.acks", commands="lagwise.commands"),
)


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Commits per second by part and number of keys."""
    commits, times = (200_000, 5) if quick else (1_000_000, 9)
    figures: dict[str, Any] = {}
    spark = build_session({}, jars=tuple(str(jar) for jar in resolve_for_spark(PACKAGES)))
    for keys in (10_000, 100_000):
        records = list(_records(keys, commits))
        figures[f"arrays, {keys} keys"] = _arrays(records, times)
        say(f"arrays, {keys} keys: {figures[f'arrays, {keys} keys']}")
        figures[f"cached, {keys} keys"] = _cached(spark, records, times)
        say(f"cached, {keys} keys: {figures[f'cached, {keys} keys']}")
        figures[f"broker, {keys} keys"] = _broker(spark, records, times)
        say(f"broker, {keys} keys: {figures[f'broker, {keys} keys']}")
    spark.stop()
    return figures


def _records(keys: int, commits: int) -> Any:
    return many_commits(
        groups=keys // _PARTITIONS_OF_A_TOPIC,
        topics=1,
        partitions=_PARTITIONS_OF_A_TOPIC,
        rounds=commits // keys,
    )


def _arrays(records: list[RawRecord], times: int) -> dict[str, Any]:
    batches = [
        (
            pa.array([r.key for r in records[at : at + _ARROW_BATCH]], pa.binary()),
            pa.array([r.value for r in records[at : at + _ARROW_BATCH]], pa.binary()),
        )
        for at in range(0, len(records), _ARROW_BATCH)
    ]

    def work() -> None:
        for key, value in batches:
            decode_offset_commits(key, value)
            last_per_key(key, np.arange(len(key)))

    return repeat(work, times=times, warm_up=2).figures(len(records))


def _cached(spark: SparkSession, records: list[RawRecord], times: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder:
        _write(records, Path(folder))
        rows = (
            _like_the_stream(spark.read.parquet(folder)).repartition(OFFSETS_PARTITIONS, "partition").cache()
        )
        rows.count()
        timing = repeat(lambda: _run(rows), times=times, warm_up=3)
        rows.unpersist(blocking=True)
    return timing.figures(len(records))


def _broker(spark: SparkSession, records: list[RawRecord], times: int) -> dict[str, Any]:
    with small_broker() as broker:
        create_offsets_topic(broker.bootstrap_servers)
        inject(broker.bootstrap_servers, records)
        source = (
            spark.read.format("kafka")
            .option("kafka.bootstrap.servers", broker.bootstrap_servers)
            .option("assign", json.dumps({OFFSETS_TOPIC: list(range(OFFSETS_PARTITIONS))}))
            .option("kafka.isolation.level", "read_committed")
            .option("startingOffsets", "earliest")
            .load()
        )
        rows = _like_the_stream(source.select(*_RECORD_COLUMNS))
        timing = repeat(lambda: _run(rows), times=times, warm_up=2, without=broker.pid)
    return timing.figures(len(records))


def _run(rows: DataFrame) -> None:
    fold.newest_commits(decode(rows, _FILTERS)).write.format("noop").mode("overwrite").save()


def _like_the_stream(records: DataFrame) -> DataFrame:
    """The columns of `source.read_stream`, those of log offsets null."""
    spark = records.sparkSession
    ticks = spark.createDataFrame([], LOG_OFFSETS_SCHEMA)
    missing = [field for field in ticks.schema if field.name not in records.columns]
    nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in missing]
    return records.select("*", F.lit("record").alias("kind"), *nulls)


def _write(records: list[RawRecord], folder: Path) -> None:
    """One file per partition of the offsets topic, in the order in which a broker would hold it."""
    for number in range(OFFSETS_PARTITIONS):
        mine = [record for record in records if record.partition == number]
        table = pa.table(
            {
                "topic": pa.array([OFFSETS_TOPIC] * len(mine)),
                "partition": pa.array([number] * len(mine), pa.int32()),
                "offset": np.arange(len(mine)),
                "timestamp": pa.array([1_700_000_000_000_000] * len(mine), pa.timestamp("us", "UTC")),
                "key": pa.array([record.key for record in mine], pa.binary()),
                "value": pa.array([record.value for record in mine], pa.binary()),
            }
        )
        pq.write_table(table, folder / f"{number}.parquet")
