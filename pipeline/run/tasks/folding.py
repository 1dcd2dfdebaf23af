"""Tasks: fold ranges of a latest table, and write a file of each.

The new rows of a batch are bounded, and go to the task of their range; tasks read stored rows from the tables. If Spark
joined the two, each join would shuffle every stored row, and half of the time would go into converting Arrow to Spark's
rows and back.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction
from pyspark.sql import types as t

from pipeline.arrow_stream import unpacked
from pipeline.config.secret_values import resolve
from pipeline.row_ranges import Ranges
from pipeline.source.deadline import TABLES_S, within
from pipeline.tables.files import write_file
from pipeline.tables.reading import Readable, Tables
from pipeline.tables.storage import trouble_of
from pipeline.tables.table_files import SentTables, TableFiles

Fold: TypeAlias = Callable[[Readable, pa.Table, pc.Expression | None], pa.Table]
"""Returns the rows that a range of the table gets, from the tables, the new rows, and a filter for the stored rows."""

SHARES = pa.schema([("number", pa.int32()), ("new", pa.binary())])
"""Input of a task: the number of its range, and the range's new rows, packed."""
FILES = t.StructType(
    [
        t.StructField("file", t.StringType()),
        t.StructField("trouble", t.StringType()),
        t.StructField("refusal", t.StringType()),
    ]
)
"""Output of a task for each range that has rows: the file, as JSON of Delta's AddAction, the storage's trouble, or why
the store refuses the write."""
_ANSWER = pa.schema([(field.name, pa.string()) for field in FILES])


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldingTask:
    """Folds the ranges of one task; created on the driver, called on the executors."""

    root: str
    storage_options: Mapping[str, str]
    """As configured; references to secrets are resolved where the tables are read."""
    name: str
    """Name of the table."""
    reads: Mapping[str, TableFiles]
    """Tables that `fold` reads, at the versions that the driver knows."""
    fold: Fold
    ranges: Ranges

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row of `FILES` for each row of `SHARES` whose range has rows."""
        tables = Tables(self.root, resolve(self.storage_options))
        for batch in batches:
            for number, new in zip(batch["number"].to_pylist(), batch["new"], strict=True):
                if (answer := self._answer(tables, number, new)) is not None:
                    yield pa.RecordBatch.from_pylist([answer], _ANSWER)
                # Another worker may fold the next range: this one must not hold on to the memory of its last.
                pa.default_memory_pool().release_unused()

    def _answer(self, tables: Tables, number: int, new: pa.BinaryScalar) -> dict[str, str] | None:
        try:
            file = self._file(tables, number, new)
        except Exception as error:
            # The driver waits for the storage. If this were raised here, Spark would retry the task at once and log a
            # traceback for each attempt.
            if (trouble := trouble_of(error)) is not None:
                return {"trouble": trouble}
            # Whether tasks have ever been allowed to write, the driver knows.
            if (refusal := trouble_of(error, has_been_written=True)) is not None:
                return {"refusal": refusal}
            raise
        return None if file is None else {"file": json.dumps(asdict(file))}

    def _file(self, tables: Tables, number: int, new: pa.BinaryScalar) -> AddAction | None:
        # A function, so that the rows of a range are let go before the next one is read.
        with within(TABLES_S):
            read = SentTables(self.reads, tables.storage_options)
            rows = self.fold(read, unpacked(new), self.ranges.where(number))
            return write_file(tables, self.name, rows, key=self.ranges.column) if rows.num_rows else None
