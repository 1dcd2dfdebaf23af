"""Decode: where logs start and end, asked of the brokers as `kafka.sources.log_offsets` does, as decoded rows."""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from pipeline.decode.shares import Decoded, rows_of_shares
from pipeline.decode.step import log_offset_rows
from pipeline.kafka.sources.log_offsets.ask import ask, shares
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, Share


def read(spark: SparkSession, settings: LogOffsetsSettings) -> Decoded:
    """A row of kind 'log_offset' for each wanted partition, and one of kind 'listing'."""
    return rows_of_shares(spark, partial(_rows, settings), shares(settings))


def _rows(settings: LogOffsetsSettings, share: Share) -> Iterator[pa.RecordBatch]:
    yield log_offset_rows(ask(settings, share))
