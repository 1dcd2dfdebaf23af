"""Source: a Python data source that asks the brokers for log start and log end offsets at every trigger.

One row per partition:

    topic, topic_id, partition, log_start_offset, log_end_offset, isolation, observed_at_ms, error

`error` is set, and the offsets are null, where the broker did not answer. A row whose topic is null carries
the listing itself: with an error nothing is known about which topics exist, without one a topic that has no
row is to be asked for by its name (`topics_gone`). Whatever happens to the cluster, the query does not fail: the
rows say what went wrong.

The tick is what keeps the stream going: Spark starts no batch without new data, and a group whose consumers
have stopped commits nothing while its lag grows.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from pipeline import clock
from pipeline.kafka.sources.log_offsets.ask import ask, list_topics
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, Slice, slices

NAME = "lagwise_log_offsets"

# One task asks for so many in about 0.4 s; another one has a price of its own.
_SHARE_PARTITIONS = 5000

SCHEMA = (
    "topic string, topic_id string, partition int, log_start_offset long, log_end_offset long, "
    "isolation string, observed_at_ms long, error string"
)

_ARROW = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("log_start_offset", pa.int64()),
        ("log_end_offset", pa.int64()),
        ("isolation", pa.string()),
        ("observed_at_ms", pa.int64()),
        ("error", pa.string()),
    ]
)


class LogOffsetsSource(DataSource):
    """`spark.readStream.format("lagwise_log_offsets").option("settings", …)`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return NAME

    def schema(self) -> str:
        """One row per partition; see the module."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> "LogOffsetsReader":  # noqa: ARG002, N802 - Spark's signature
        """A reader that has a new tick at every trigger."""
        return LogOffsetsReader(LogOffsetsSettings.from_json(self.options["settings"]))


class LogOffsetsReader(DataSourceStreamReader):
    """Lists topics where the stream is planned, asks for offsets on the executors."""

    def __init__(self, settings: LogOffsetsSettings) -> None:
        self.settings = settings

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Tick zero."""
        return {"tick": 0}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """The present time: every trigger is new, and nothing here can fail."""
        return {"tick": clock.now_ms()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Slice]:  # noqa: ARG002 - Spark's signature
        """The wanted partitions in shares of equal size, as many as are worth it and at most `splits`."""
        try:
            topics, error = self._list_topics()
            worth = -(-sum(map(len, topics.values())) // _SHARE_PARTITIONS)
            shares = slices(topics, min(self.settings.splits, max(1, worth)))
            shares[0].error = error
            return shares  # noqa: TRY300 - one exit for what was listed, one for what could not be
        except Exception as error:  # noqa: BLE001 - an exception here fails the query; the row says it instead
            return [Slice(topics=[], error=f"topics could not be listed: {error}", carries_listing=True)]

    def read(self, partition: Slice) -> Iterator[pa.RecordBatch]:  # type: ignore[override]  # pyspark's takes any share
        """One batch of rows for the share."""
        yield pa.RecordBatch.from_pylist(list(ask(self.settings, partition)), schema=_ARROW)

    def _list_topics(self) -> tuple[dict[str, list[int]], str | None]:
        return list_topics(self.settings)
