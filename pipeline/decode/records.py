"""Source: the records of some spans, read and decoded in the same worker.

Records go from librdkafka straight into the decoder: what crosses to Spark is a row for each partition that was
committed, not one for each commit. A span whose leader stops answering ends early and says so; the records before
that count, and the next batch goes on where it ended (`kafka.positions`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pipeline.decode.step import DECODED, Decoder, Filters, counted, rows_of
from pipeline.kafka.positions import Span, shares
from pipeline.kafka.sources.records.consumer import ReadSettings, consume

# A task is a round trip to a Python worker, and a consumer that connects again in a new worker.
_RECORDS_A_TASK = 50_000


def read(
    spark: SparkSession, spans: tuple[Span, ...], settings: ReadSettings, filters: Filters
) -> DataFrame | None:
    """Decoded rows of the spans' records, and one row of kind 'read' for each span; None when there is no span."""
    if not spans:
        return None
    parts = shares(spans, tasks=spark.sparkContext.defaultParallelism, records_a_task=_RECORDS_A_TASK)
    tasks = spark.range(0, len(parts), 1, len(parts))
    return tasks.mapInArrow(_Worker(parts, settings, filters), schema=DECODED)


class _Worker:
    """What one task does; made on the driver, runs on the executors."""

    def __init__(self, parts: list[list[Span]], settings: ReadSettings, filters: Filters) -> None:
        self.parts = parts
        self.settings = settings
        self.filters = filters

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = Decoder(self.filters)
        counts: Counter[str] = Counter()
        for batch in batches:
            for number in batch["id"].to_pylist():
                for piece in consume(self.parts[number], self.settings):
                    if isinstance(piece, pa.RecordBatch):
                        yield from decoder.decode(piece, counts)
                    else:
                        yield _reached(piece)
        yield from counted(counts)


def _reached(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return rows_of([row | {"row_kind": "read"} for row in rows])
