"""Decode + latest per key: as arrays alone, by the decoder of one worker, and by Spark from the broker.

The input is version 4 commits with a topic id, written round by round: every key once, then every key again.
That is the hard order, since an Arrow batch then holds few commits of one key that could be collapsed.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from pipeline.config.model import SourceConfig
from pipeline.decode.filters import ControlTopics, Filters
from pipeline.decode.offset_columns import decode_offset_commits, last_per_key
from pipeline.decode.step import Decoder
from pipeline.kafka.sources.records.taking import RECORDS
from pipeline.local.jars import resolve_for_spark
from pipeline.run.spark.session import PACKAGES, build_session
from pipeline.source.datasource import FORMAT, LagwiseSource
from tests.benchmarks.timing import repeat
from tests.support.brokers.broker import (
    OFFSETS_PARTITIONS,
    OFFSETS_TOPIC,
    create_offsets_topic,
    small_broker,
)
from tests.support.brokers.inject import RawRecord, inject, many_commits

Say = Callable[[str], None]

_ARROW_BATCH = 100_000
_PARTITIONS_OF_A_TOPIC = 100
_TIMEOUT_S = 30.0
_FILTERS = Filters(
    **SourceConfig().model_dump(include=set(Filters.__dataclass_fields__) - {"control_topics"}),
    control_topics=ControlTopics(cluster="local", acks="lagwise.acks", commands="lagwise.commands"),
)


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Commits per second by part and number of keys."""
    commits, times = (200_000, 5) if quick else (1_000_000, 9)
    figures: dict[str, Any] = {}
    spark = build_session({}, jars=resolve_for_spark(PACKAGES))
    spark.dataSource.register(LagwiseSource)
    for keys in (10_000, 100_000):
        raw = list(_records(keys, commits))
        figures[f"arrays, {keys} keys"] = _arrays(raw, times)
        say(f"arrays, {keys} keys: {figures[f'arrays, {keys} keys']}")
        figures[f"decoder, {keys} keys"] = _decoder(raw, times)
        say(f"decoder, {keys} keys: {figures[f'decoder, {keys} keys']}")
        figures[f"broker, {keys} keys"] = _broker(spark, raw, times)
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


def _arrays(raw: list[RawRecord], times: int) -> dict[str, Any]:
    batches = [
        (
            pa.array([r.key for r in raw[at : at + _ARROW_BATCH]], pa.binary()),
            pa.array([r.value for r in raw[at : at + _ARROW_BATCH]], pa.binary()),
        )
        for at in range(0, len(raw), _ARROW_BATCH)
    ]

    def work() -> None:
        for key, value in batches:
            decode_offset_commits(key, value)
            last_per_key(key, np.arange(len(key)))

    return repeat(work, times=times, warm_up=2).figures(len(raw))


def _decoder(raw: list[RawRecord], times: int) -> dict[str, Any]:
    """One partition of the offsets topic after the other, as a worker reads them."""
    by_partition = [[one for one in raw if one.partition == number] for number in range(OFFSETS_PARTITIONS)]
    batches = [
        _batch(mine[at : at + _ARROW_BATCH], offset=at)
        for mine in by_partition
        for at in range(0, len(mine), _ARROW_BATCH)
    ]

    def work() -> None:
        decoder, counts = Decoder(_FILTERS), Counter[str]()
        for batch in batches:
            for _ in decoder.decode(batch, counts):
                pass

    return repeat(work, times=times, warm_up=2).figures(len(raw))


def _broker(spark: SparkSession, raw: list[RawRecord], times: int) -> dict[str, Any]:
    with small_broker() as broker:
        create_offsets_topic(broker.bootstrap_servers)
        inject(broker.bootstrap_servers, raw)
        reader = spark.read.format(FORMAT).option("kafka.bootstrap.servers", broker.bootstrap_servers)

        def work() -> None:
            reader.load().toArrow()

        timing = repeat(work, times=times, warm_up=2, without=broker.pid)
    return timing.figures(len(raw))


def _batch(mine: list[RawRecord], *, offset: int) -> pa.RecordBatch:
    """Records of one partition, in the order in which a broker would hold them."""
    columns = {
        "topic": [OFFSETS_TOPIC] * len(mine),
        "partition": [record.partition for record in mine],
        "offset": np.arange(offset, offset + len(mine)),
        "timestamp": [1_700_000_000_000_000] * len(mine),
        "key": [record.key for record in mine],
        "value": [record.value for record in mine],
    }
    return pa.RecordBatch.from_pydict(columns, schema=RECORDS)
