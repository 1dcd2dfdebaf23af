"""Writes of a batch, and readings that several steps share."""

import pyarrow as pa

from pipeline.arrow_columns import moment
from pipeline.run.driver import Batch
from pipeline.run.rows import of_cluster


def is_new_cluster(batch: Batch) -> bool:
    """Whether the tables are still about another cluster that had this name."""
    start = batch.driver.replay.start
    return start is not None and start.is_new_cluster


def ghosts_of(batch: Batch) -> tuple[str, ...] | None:
    """Groups whose stored rows do not count: those that the brokers no longer know; None when no rows do.

    Commits of this cluster must not be held against topics of another one of its name, which had other ids.
    """
    return None if is_new_cluster(batch) else batch.ghosts


def write_measured(batch: Batch, name: str, rows: pa.Table) -> None:
    """Write the rows into the table, with the cluster's name and the batch's stamp."""
    write(batch, name, of_cluster(batch.services.cluster, rows))


def write(batch: Batch, name: str, rows: pa.Table) -> None:
    """Write the rows into the table; they have the cluster's name and the batch's time and number."""
    batch.driver.tables.versions.pop(name, None)
    batch.services.store.write(name, rows, batch.clock)
    batch.written.add(name)


def stamped(batch: Batch, rows: pa.Table) -> pa.Table:
    """The rows with time and number of the batch."""
    columns = {"updated_at": moment(batch.clock.at_ms), "batch_id": pa.scalar(batch.batch_id, pa.int64())}
    for name, value in columns.items():
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows
