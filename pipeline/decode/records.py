"""Decode: the records of some spans, read and decoded in the same place.

Records go from librdkafka straight into the decoder: what a task hands on is a row for each partition that was
committed, not one for each commit. A span whose leader stops answering ends early and says so; the records before
that count, and the next batch goes on where it ended (`kafka.positions`).
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from pipeline.decode.decoded import Decoded, newest_of
from pipeline.decode.shares import rows_of_shares
from pipeline.decode.step import Decoder, Filters, counted, rows_of
from pipeline.kafka.positions import Span, shares
from pipeline.kafka.sources.records.consumer import ReadSettings, consume

# A task is a round trip to a Python worker, and a consumer that connects again in a new worker.
_RECORDS_A_SHARE = 50_000


def read(spark: SparkSession, spans: tuple[Span, ...], settings: ReadSettings, filters: Filters) -> Decoded:
    """Decoded rows of the spans' records, `Decoded.newest` of all, and one row of kind 'read' for each span."""
    tasks = spark.sparkContext.defaultParallelism
    parts = shares(spans, tasks=tasks, records_a_task=_RECORDS_A_SHARE) if spans else []
    found = rows_of_shares(spark, partial(_rows, settings, filters), parts)
    # A group may have records in two partitions of the offsets topic, and those two may be in two shares.
    return found.newest() if len(parts) > 1 else found


def _rows(settings: ReadSettings, filters: Filters, spans: list[Span]) -> Decoded:
    return newest_of(_batches(settings, filters, spans))


def _batches(settings: ReadSettings, filters: Filters, spans: list[Span]) -> Iterator[pa.RecordBatch]:
    decoder = Decoder(filters)
    counts: Counter[str] = Counter()
    for piece in consume(spans, settings):
        if isinstance(piece, pa.RecordBatch):
            yield from decoder.decode(piece, counts)
        else:
            yield _reached(piece)
    yield from counted(counts)


def _reached(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return rows_of([row | {"row_kind": "read"} for row in rows])
