"""Where a table is folded: on the driver, or by Spark's tasks, each of which reads, folds and writes a range of it.

What a batch brings is bounded, and goes to the task of its range; what is stored is where the tasks can read it. To let
Spark join the two would take an exchange of every stored row for each join, and half of the time would go into turning
Arrow into Spark's rows and back.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction

from pipeline.arrow_stream import packed, unpacked
from pipeline.config.secret_values import resolve
from pipeline.row_ranges import Ranges, ranges_of
from pipeline.run.batch.writes import write
from pipeline.run.driver import Batch, Driver
from pipeline.tables.files import write_file
from pipeline.tables.reading import Tables
from pipeline.tables.store import absolute

FEW_ROWS = 150_000
"""What the driver folds of a table, stored rows or new ones."""
_MOST_ROWS_A_TASK = 250_000
"""So many stored rows, with what is made of them, take a worker about 1 GB."""
_LEAST_ROWS_A_TASK = 50_000
"""To open the tables and to make a file takes longer than to fold fewer."""
_SHARES = pa.schema([("number", pa.int32()), ("new", pa.binary())])

Fold: TypeAlias = Callable[[Tables, pa.Table, pc.Expression | None], pa.Table]
"""From the tables, the new rows, and which stored rows are in the range (None: all): the rows that the table gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """How a latest table comes to its rows."""

    name: str
    key: str
    """Column of both the table and the new rows; the rows of one value are folded together."""
    fold: Fold
    """Can be pickled."""


def write_folded(batch: Batch, folding: Folding, new: pa.Table, rows: Mapping[str, int]) -> None:
    """Overwrite a latest table with what is folded: on the driver when that is little, else in tasks.

    Args:
        batch: On its way.
        folding: Of the table.
        new: What the batch brings.
        rows: By value of the key: about how many rows there are to be folded.
    """
    store = batch.services.store
    if sum(rows.values()) <= FEW_ROWS:
        write(batch, folding.name, folding.fold(Tables(store.root, store.storage_options), new, None))
    else:
        store.write_files(folding.name, lambda: _in_tasks(batch.driver, folding, new, rows), batch.clock)
        batch.written.add(folding.name)


def rows_by(key: str, *tables: pa.Table) -> dict[str, int]:
    """The rows of each value of the column, in the table that has most of them."""
    rows: dict[str, int] = {}
    for table in tables:
        for one in table[key].value_counts().to_pylist():
            rows[one["values"]] = max(rows.get(one["values"], 0), one["counts"])
    return rows


def _in_tasks(driver: Driver, folding: Folding, new: pa.Table, rows: Mapping[str, int]) -> list[AddAction]:
    spark, services = driver.spark, driver.services
    tasks = min(spark.sparkContext.defaultParallelism, sum(rows.values()) // _LEAST_ROWS_A_TASK)
    ranges = ranges_of(folding.key, rows, at_least=tasks, most_rows=_MOST_ROWS_A_TASK)
    worker = _Worker(
        # Executors have working folders of their own.
        root=absolute(services.store.root),
        storage_options=services.config.tables.storage_options,
        folding=folding,
        ranges=ranges,
    )
    frame = spark.createDataFrame(_shares(ranges, new))
    files = frame.mapInArrow(worker, schema="file string").toArrow()["file"]
    return [AddAction(**json.loads(file)) for file in files.to_pylist()]


def _shares(ranges: Ranges, new: pa.Table) -> pa.Table:
    rows = [{"number": number, "new": packed(share)} for number, share in enumerate(ranges.shares(new))]
    # A batch each: of what is large Spark makes a partition of each batch, and one batch would be work for one task.
    return pa.Table.from_batches([pa.RecordBatch.from_pylist([row], _SHARES) for row in rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worker:
    """What one task does for its ranges; made on the driver, runs on the executors."""

    root: str
    storage_options: Mapping[str, str]
    """As configured; references to secrets are resolved where the tables are read."""
    folding: Folding
    ranges: Ranges

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = Tables(self.root, resolve(self.storage_options))
        for batch in batches:
            for number, new in zip(batch["number"].to_pylist(), batch["new"], strict=True):
                if (file := self._file(tables, number, new)) is not None:
                    yield pa.RecordBatch.from_pydict({"file": [json.dumps(asdict(file))]})

    def _file(self, tables: Tables, number: int, new: pa.BinaryScalar) -> AddAction | None:
        # A function, so that the rows of a range are let go before the next one is read.
        rows = self.folding.fold(tables, unpacked(new), self.ranges.where(number))
        return write_file(tables, self.folding.name, rows, key=self.folding.key) if rows.num_rows else None
