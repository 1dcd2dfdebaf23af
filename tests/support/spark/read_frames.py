"""Frames and a session of which the tasks run in this process: what steps hand to Spark, without Spark."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from pipeline.decode.rows import ARROW
from tests.support.job.frames import decoded_arrow

_Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class HereFrame:
    """Rows, of which each batch is a partition."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def mapInArrow(self, task: _Task, *, schema: Any) -> "HereFrame":  # noqa: N802 - Spark's name
        """The rows that a task makes of them."""
        batches = self._rows.to_batches()
        made = [one for batch in batches for one in task(iter([batch]))]
        return HereFrame(pa.Table.from_batches(made, None if made else to_arrow_schema(schema)))

    def toArrow(self) -> pa.Table:  # noqa: N802
        """The rows."""
        return self._rows


def read_frame(offset: dict[str, Any], *rows: dict[str, Any]) -> HereFrame:
    """What Spark's source has read.

    Args:
        offset: As the source has written it.
        rows: Decoded rows, see `frames.decoded_arrow`.
    """
    return rows_frame({"row_kind": "intake", "reason": json.dumps(offset)}, *rows)


def rows_frame(*rows: dict[str, Any]) -> HereFrame:
    """The decoded rows of a batch, its offset among them, see `frames.decoded_arrow`."""
    return HereFrame(decoded_arrow(*rows).cast(ARROW))


class HereSpark:
    """Stands for a session of one core."""

    class sparkContext:  # noqa: N801 - pyspark's name
        """Stands for its context."""

        master = "local[1,4]"
        defaultParallelism = 1  # noqa: N815

        @staticmethod
        def setJobDescription(_text: str) -> None:  # noqa: N802
            """Nobody looks."""

    @staticmethod
    def createDataFrame(rows: pa.Table) -> HereFrame:  # noqa: N802
        """A frame of the rows."""
        return HereFrame(rows)
