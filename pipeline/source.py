"""Source: the offsets topic, acknowledgements and commands from Kafka, and the log offsets, as one stream.

    topic, partition, offset, timestamp, key, value                    of every Kafka record
    topic, partition, log_start_offset, …, observed_at_ms, error       of every log offset (see `log_offsets`)
    kind                                                               'record' or 'log_offset'

A checkpoint freezes the list of sources: these two, in this order, for ever.
"""

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.log_offsets import NAME, LogOffsetsSettings, LogOffsetsSource

OFFSETS_TOPIC = "__consumer_offsets"

# Spark polls only for records that it knows to be there. A consumer that has read its range asks for more all the
# same, and its next batch waits until the broker has answered that: half a second by Kafka's default, for each
# partition of the offsets topic one after the other.
_FETCH_MAX_WAIT_MS = "10"

_RECORD_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value")


def read_stream(
    spark: SparkSession,
    *,
    java_properties: Mapping[str, str],
    partitions: Mapping[str, int],
    max_offsets_per_trigger: int,
    log_offsets: LogOffsetsSettings,
) -> DataFrame:
    """The union of both sources.

    Args:
        spark: Session to read in.
        java_properties: Client properties of Spark's Kafka source, without the `kafka.` prefix.
        partitions: Number of partitions of each topic to read.
        max_offsets_per_trigger: Upper limit of records in a batch, so that the first ones stay small.
        log_offsets: What the second source asks.
    """
    records = (
        spark.readStream.format("kafka")
        .option("kafka.fetch.max.wait.ms", _FETCH_MAX_WAIT_MS)
        .options(**{f"kafka.{name}": value for name, value in java_properties.items()})
        # `subscribe` would join a group and write into the very topic that is read.
        .option("assign", json.dumps({topic: list(range(n)) for topic, n in sorted(partitions.items())}))
        # Offsets committed in a transaction that was aborted must never show.
        .option("kafka.isolation.level", "read_committed")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(max_offsets_per_trigger))
        # Compaction removes records at any time; what it keeps is what counts.
        .option("failOnDataLoss", "false")
        .load()
        .select(*_RECORD_COLUMNS, F.lit("record").alias("kind"))
    )
    spark.dataSource.register(LogOffsetsSource)
    ticks = (
        spark.readStream.format(NAME)
        .option("settings", log_offsets.to_json())
        .load()
        .withColumn("kind", F.lit("log_offset"))
    )
    return records.unionByName(ticks, allowMissingColumns=True)
