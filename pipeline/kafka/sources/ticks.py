"""Source: the ticks of the stream, each with the log offsets of the moment (see `sources.log_offsets`).

The streaming query has this one source. What is read from the offsets topic, the acks topic and the commands topic
is not among Spark's sources: a batch reads it itself, leader by leader (`records`), and where it goes on is stored
with the rows (`positions`). Spark's own Kafka source waits for every leader before each batch, so that one of them
that hangs stops the stream for all groups (ADR 0010).
"""

from pyspark.sql import DataFrame, SparkSession

from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings
from pipeline.kafka.sources.log_offsets.source import NAME, LogOffsetsSource


def read_ticks(spark: SparkSession, log_offsets: LogOffsetsSettings) -> DataFrame:
    """One streaming row per partition of every wanted topic, at every trigger."""
    spark.dataSource.register(LogOffsetsSource)
    return spark.readStream.format(NAME).option("settings", log_offsets.to_json()).load()
