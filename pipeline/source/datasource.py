"""Source: the door for Spark, `spark.dataSource.register(LagwiseSource)` and `spark.readStream.format("lagwise")`.

Before the first batch Spark starts three Python processes one after the other: for the schema, for the copy of the
reader that tasks get, and for choosing batches. Only the last one needs the planner and the tables, whose imports take
longer than all others; functions import them here.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, cast

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from pipeline.decode.rows import DECODED
from pipeline.source.settings import SourceSettings, from_options, is_job

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.source.offset import Json
    from pipeline.source.partitions import Part
    from pipeline.source.planner import Planner

FORMAT = "lagwise"


class LagwiseSource(DataSource):
    """Commits, group records, acknowledgements, orders and log ends, as `decode.rows` describes them."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return FORMAT

    def schema(self) -> StructType:
        """Columns of decoded rows."""
        return DECODED

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002 - Spark's signature
        """The reader of one query."""
        if is_job(self.options):
            return StreamReader(from_options(self.options))
        from pipeline.source.alone import AloneStreamReader, settings_alone  # noqa: PLC0415

        return AloneStreamReader(settings_alone(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        """The reader of what is there now."""
        from pipeline.source.alone import AloneReader, settings_alone  # noqa: PLC0415

        return AloneReader(settings_alone(self.options))


class StreamReader(DataSourceStreamReader):
    """The batches of one query: chosen in Spark's process for it, read by tasks."""

    def __init__(self, settings: SourceSettings) -> None:
        """Nothing is asked; tasks have a copy of this."""
        self._settings = settings
        self._newest: Json = {}

    @cached_property
    def _planner(self) -> "Planner":
        from pipeline.source.planner import Planner  # noqa: PLC0415

        return Planner(self._settings)

    def initialOffset(self) -> "Json":
        """That of a query without a checkpoint."""
        return {}

    def latestOffset(self, start: "Json | None" = None, limit: object = None) -> "Json":  # noqa: ARG002 - Spark's signature
        """Return the offset of the next batch; `start` while none is due, so that Spark begins none.

        Args:
            start: End of the batch before; not given by Spark before 4.2.
            limit: Spark's, which the settings of the job replace.
        """
        offset = self._planner.next_offset()
        if offset is None:
            return self._newest if start is None else start
        self._newest = offset.to_json()
        return self._newest

    def reportLatestOffset(self) -> "Json":
        """Return the newest offset for Spark's progress: the last one chosen, without asking a broker."""
        return self._newest

    def partitions(self, start: "Json", end: "Json") -> list[InputPartition]:  # noqa: ARG002 - the tables say the start
        """The parts of the batch that ends there."""
        from pipeline.source.partitions import parts_of  # noqa: PLC0415

        return [*parts_of(end, self._planner, self._settings)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Rows of one part; runs in a task."""
        from pipeline.source.reading import rows_of_part  # noqa: PLC0415

        return rows_of_part(self._settings, cast("Part", partition))
