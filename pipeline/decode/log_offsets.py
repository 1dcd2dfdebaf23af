"""Decode: where logs start and end, asked of the brokers as `kafka.sources.log_offsets` does, as decoded rows."""

from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pipeline.decode.decoded import Decoded, decoded_of
from pipeline.decode.shares import rows_of_shares
from pipeline.decode.step import log_offset_rows
from pipeline.kafka.sources.log_offsets.apart import ask_apart
from pipeline.kafka.sources.log_offsets.ask import ask, shares
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, Share


def read(spark: SparkSession, settings: LogOffsetsSettings) -> Decoded:
    """A row of kind 'log_offset' for each wanted partition, and one of kind 'listing'."""
    splits = settings.splits or spark.sparkContext.defaultParallelism
    parts = shares(replace(settings, splits=splits))
    if len(parts) == 1:
        return _decoded(ask_apart(settings, parts[0]))
    return rows_of_shares(spark, partial(_rows, settings), parts)


def _rows(settings: LogOffsetsSettings, share: Share) -> Decoded:
    return _decoded(ask(settings, share))


def _decoded(answers: pa.RecordBatch) -> Decoded:
    is_listing = pc.is_null(answers["topic"])
    return decoded_of(log_offset_rows(answers.filter(one)) for one in (is_listing, pc.invert(is_listing)))
