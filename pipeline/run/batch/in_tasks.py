"""Folding of tables in Spark's tasks: each reads, folds and writes a range, and the driver commits the files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from deltalake.transaction import AddAction

from pipeline import task_sizes
from pipeline.arrow_stream import packed
from pipeline.errors import StorageRefusedError, StorageUnavailableError
from pipeline.row_ranges import Ranges
from pipeline.run.batch.intake import Settled
from pipeline.run.tasks.folding import FILES, SHARES, Fold, FoldingTask
from pipeline.tables.store import absolute


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """How the rows of a table are made."""

    name: str
    key: str
    """Column of both the table and the new rows; the rows of one value are folded together."""
    reads: Sequence[str]
    """Tables that `fold` reads."""
    fold: Fold
    """Can be pickled."""


def write_folded(batch: Settled, folding: Folding, new: pa.Table, rows: Mapping[str, int]) -> None:
    """Overwrite a latest table with what tasks fold, or append it to an append table.

    Args:
        batch: Batch whose stamp the commit gets.
        folding: Of the table.
        new: New rows of the batch.
        rows: Approximate number of rows to fold, by value of the key.
    """
    driver = batch.driver
    driver.services.store.write_files(folding.name, lambda: _files(batch, folding, new, rows), batch.stamp)


def rows_by(key: str, *tables: pa.Table) -> dict[str, int]:
    """The rows of each value of the column, in the table that has most of them."""
    rows: dict[str, int] = {}
    for table in tables:
        for one in table[key].value_counts().to_pylist():
            rows[one["values"]] = max(rows.get(one["values"], 0), one["counts"])
    return rows


def _files(batch: Settled, folding: Folding, new: pa.Table, rows: Mapping[str, int]) -> list[AddAction]:
    driver = batch.driver
    ranges = task_sizes.folding(folding.key, rows, cores=driver.parallelism)
    task = FoldingTask(
        # Executors have working folders of their own.
        root=absolute(driver.services.store.root),
        storage_options=driver.services.config.tables.storage_options,
        name=folding.name,
        reads=driver.services.store.files(folding.reads),
        fold=folding.fold,
        ranges=ranges,
    )
    driver.describe(batch.stamp.batch_id, f"fold {folding.name}")
    return added(driver.spark.createDataFrame(_shares(ranges, new)).mapInArrow(task, schema=FILES).toArrow())


def added(answers: pa.Table) -> list[AddAction]:
    """Files that tasks have written.

    Args:
        answers: `FILES` from `FoldingTask`.

    Raises:
        StorageRefusedError: The store refused a task its file. The files of the others are never
            committed.
        StorageUnavailableError: A task could not write its file for another reason of the storage's.
    """
    for refusal in answers["refusal"].drop_null().to_pylist():
        raise StorageRefusedError(refusal)
    for trouble in answers["trouble"].drop_null().to_pylist():
        raise StorageUnavailableError(trouble)
    return [AddAction(**json.loads(file)) for file in answers["file"].to_pylist()]


def _shares(ranges: Ranges, new: pa.Table) -> pa.Table:
    rows = [{"number": number, "new": packed(share)} for number, share in enumerate(ranges.shares(new))]
    # A batch each: of what is large Spark makes a partition of each batch, and one batch would be work for one task.
    return pa.Table.from_batches([pa.RecordBatch.from_pylist([row], SHARES) for row in rows])
