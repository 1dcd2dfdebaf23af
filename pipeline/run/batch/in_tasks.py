"""Where a table is folded: on the driver, or by Spark's tasks, each of which reads, folds and writes a range of it.

What a batch brings is bounded, and goes to the task of its range; what is stored is where the tasks can read it. To let
Spark join the two would take an exchange of every stored row for each join, and half of the time would go into turning
Arrow into Spark's rows and back.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction

from pipeline.arrow_stream import packed, unpacked
from pipeline.config.secret_values import resolve
from pipeline.run.batch.writes import write
from pipeline.run.driver import Batch
from pipeline.run.services import Services
from pipeline.tables.files import write_file
from pipeline.tables.reading import Tables
from pipeline.tables.store import FEW_ROWS, absolute

_ROWS_A_TASK = 250_000
"""So many stored rows, with what is made of them, take a worker about 1 GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """The rows of a table in ranges of the values of one column."""

    column: str
    """A text column without nulls."""
    starts: tuple[str, ...]
    """The least value of each range but the first."""

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.starts) + 1

    def where(self, number: int) -> pc.Expression:
        """The rows of this range."""
        bounds = [pc.field(self.column) >= self.starts[number - 1]] if number else []
        if number < len(self.starts):
            bounds.append(pc.field(self.column) < self.starts[number])
        return bounds[0] & bounds[-1] if bounds else pc.scalar(True)

    def shares(self, rows: pa.Table) -> Iterator[pa.Table]:
        """The rows of each range."""
        encoded = rows[self.column].combine_chunks().dictionary_encode()
        of_value = [bisect_right(self.starts, value) for value in encoded.dictionary.to_pylist()]
        numbers = np.array(of_value, np.int64)[encoded.indices.to_numpy()]
        for number in range(self.count):
            yield rows.filter(pa.array(numbers == number))


def ranges_of(column: str, weights: Mapping[str, int], *, at_least: int) -> Ranges:
    """Ranges of about as many rows each; the rows of one value stay together.

    Args:
        column: Of the table.
        weights: Rows by value of the column.
        at_least: How many tasks run at a time.
    """
    values = sorted(weights)
    ends = np.cumsum([weights[value] for value in values])
    total = int(ends[-1]) if values else 0
    count = max(at_least, -(-total // _ROWS_A_TASK))
    # Where a share ends within a value, the next range begins after it.
    shares = np.arange(1, count) * (total / count)
    first = {int(index) + 1 for index in np.searchsorted(ends, shares)}
    return Ranges(
        column=column, starts=tuple(values[index] for index in sorted(first) if index < len(values))
    )


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
        store.write_files(name, lambda: _in_tasks(batch.services, name, fold, new, key), batch.clock)
        batch.written.add(name)


def _in_tasks(services: Services, name: str, fold: Fold, new: pa.Table, key: str) -> list[AddAction]:
    context = services.spark.sparkContext
    rows = _rows_by(key, services.store.arrow(name, [key]), new)
    ranges = ranges_of(key, rows, at_least=context.defaultParallelism)
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
