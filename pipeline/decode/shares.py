"""Decode: work in shares. The driver does it itself when there is one share, a Spark job when there are more.

A share is what one task is worth. To start a job for it would take longer than to do it, and the Python worker that
the task needs would stay in memory beside a driver that has little to do.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pipeline.decode.step import ARROW, DECODED

Share = TypeVar("Share")
Work: TypeAlias = Callable[[Share], Iterator[pa.RecordBatch]]
Decoded: TypeAlias = pa.Table | DataFrame
"""Decoded rows: on the driver, or to be made by a Spark job."""


def rows_of_shares(spark: SparkSession, work: Work[Share], shares: Sequence[Share]) -> Decoded:
    """Decoded rows of all shares.

    Args:
        spark: Session whose tasks do the work when there are several shares.
        work: Decoded rows of one share; it can be pickled.
        shares: Of the work.
    """
    if len(shares) <= 1:
        return pa.Table.from_batches([batch for share in shares for batch in work(share)], ARROW)
    tasks = spark.range(0, len(shares), 1, len(shares))
    return tasks.mapInArrow(_Task(work, shares), schema=DECODED)


def together(spark: SparkSession, some: Decoded, others: Decoded) -> Decoded:
    """Both, on the driver if both are there."""
    if isinstance(some, DataFrame) or isinstance(others, DataFrame):
        return as_frame(spark, some).unionByName(as_frame(spark, others))
    return pa.concat_tables([some, others])


def as_frame(spark: SparkSession, rows: Decoded) -> DataFrame:
    """The rows with Spark, wherever they are."""
    if isinstance(rows, DataFrame):
        return rows
    # PySpark cannot take a table of no chunks.
    return spark.createDataFrame(rows if rows.num_rows else [], DECODED)


class _Task(Generic[Share]):
    """What a task does; made on the driver, runs on the executors."""

    def __init__(self, work: Work[Share], shares: Sequence[Share]) -> None:
        self.work = work
        self.shares = shares

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from self.work(self.shares[number])
