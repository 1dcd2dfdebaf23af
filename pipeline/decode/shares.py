"""Decode: work in shares. The driver does it itself when there is one share, Spark's tasks when there are more.

A share is what one task is worth. To start a job for it would take longer than to do it, and the Python worker that
the task needs would stay in memory beside a driver that has little to do.

Rows come from tasks packed: Spark would take each apart, into a row of its own, and the driver would put them
together again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from pipeline.decode.decoded import PACKED, Decoded, together, unpacked_rows

Share = TypeVar("Share")
Work: TypeAlias = Callable[[Share], Decoded]


def rows_of_shares(spark: SparkSession, work: Work[Share], shares: Sequence[Share]) -> Decoded:
    """Decoded rows of all shares.

    Args:
        spark: Session whose tasks do the work when there are several shares.
        work: Decoded rows of one share; it can be pickled.
        shares: Of the work.
    """
    if len(shares) <= 1:
        return together(map(work, shares))
    tasks = spark.range(0, len(shares), 1, len(shares))
    return unpacked_rows(tasks.mapInArrow(_Task(work, shares), schema=PACKED).toArrow())


class _Task(Generic[Share]):
    """What a task does; made on the driver, runs on the executors."""

    def __init__(self, work: Work[Share], shares: Sequence[Share]) -> None:
        self.work = work
        self.shares = shares

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield self.work(self.shares[number]).packed()
