"""Where a table is folded: on the driver, or by Spark's tasks, each of which reads, folds and writes a range of it.

What a batch brings is bounded, and goes to the task of its range; what is stored is where the tasks can read it. To let
Spark join the two would take an exchange of every stored row for each join, and half of the time would go into turning
Arrow into Spark's rows and back.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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
from pipeline.tables.store import FEW_ROWS, absolute

_ROWS_A_TASK = 250_000
"""So many stored rows, with what is made of them, take a worker about 1 GB."""


Fold: TypeAlias = Callable[[Tables, pa.Table, pc.Expression | None], pa.Table]
"""From the tables, the new rows, and which stored rows are in the range (None: all): the rows that the table gets."""


def write_folded(batch: Batch, name: str, fold: Fold, new: pa.Table, *, key: str) -> None:
    """Overwrite a latest table with what is folded: on the driver while the table is small, else in tasks.

    Args:
        batch: On its way.
        name: Table.
        fold: Can be pickled.
        new: What the batch brings.
        key: Column of both the table and the new rows; the rows of one value are folded together.
    """
    store = batch.services.store
    if max(store.count(name), new.num_rows) <= FEW_ROWS:
        write(batch, name, fold(Tables(store.root, store.storage_options), new, None))
    else:
        store.write_files(name, lambda: _in_tasks(batch.driver, name, fold, new, key), batch.clock)
        batch.written.add(name)


def _in_tasks(driver: Driver, name: str, fold: Fold, new: pa.Table, key: str) -> list[AddAction]:
    context, services = driver.spark.sparkContext, driver.services
    rows = _rows_by(key, services.store.arrow(name, [key]), new)
    ranges = ranges_of(key, rows, at_least=context.defaultParallelism, most_rows=_ROWS_A_TASK)
    worker = _Worker(
        name=name,
        # Executors have working folders of their own.
        root=absolute(services.store.root),
        storage_options=services.config.tables.storage_options,
        ranges=ranges,
        fold=fold,
    )
    shares = [packed(rows) for rows in ranges.shares(new)]
    return context.parallelize(list(enumerate(shares)), ranges.count).flatMap(worker).collect()


def _rows_by(column: str, *tables: pa.Table) -> Mapping[str, int]:
    """How many rows the tables have of each value of the column."""
    rows: Counter[str] = Counter()
    for table in tables:
        rows.update({one["values"]: one["counts"] for one in table[column].value_counts().to_pylist()})
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worker:
    """What one task does for a range; made on the driver, runs on the executors."""

    name: str
    root: str
    storage_options: Mapping[str, str]
    """As configured; references to secrets are resolved where the tables are read."""
    ranges: Ranges
    fold: Fold

    def __call__(self, share: tuple[int, bytes]) -> Iterator[AddAction]:
        number, new = share
        tables = Tables(self.root, resolve(self.storage_options))
        rows = self.fold(tables, unpacked(new), self.ranges.where(number))
        if rows.num_rows:
            yield write_file(tables, self.name, rows, key=self.ranges.column)
