"""Writes of a batch, and readings that several steps share."""

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.arrow_columns import moment
from pipeline.run.driver import Batch


def is_new_cluster(batch: Batch) -> bool:
    """Whether the tables are still about another cluster that had this name."""
    start = batch.driver.replay.start
    return start is not None and start.is_new_cluster


def less_ghosts(batch: Batch, stored: DataFrame) -> DataFrame:
    """The stored rows without those of groups that the brokers no longer know, or of another cluster of this name."""
    if is_new_cluster(batch):
        # Commits of this cluster must not be held against topics of that one, which had other ids.
        return stored.limit(0)
    return stored.where(~F.col("group_id").isin(*batch.ghosts)) if batch.ghosts else stored


def less_ghosts_here(batch: Batch, stored: pa.Table) -> pa.Table:
    """As `less_ghosts`, of a table on the driver."""
    if is_new_cluster(batch):
        return stored.slice(0, 0)
    ghosts = pa.array(batch.ghosts, pa.string())
    return stored.filter(pc.invert(pc.is_in(stored["group_id"], value_set=ghosts)))


def write(batch: Batch, name: str, rows: DataFrame) -> None:
    """Write the rows into the table, with the cluster's name and the batch's stamp."""
    batch.driver.tables.versions.pop(name, None)
    named = rows.withColumn("cluster", F.lit(batch.services.cluster))
    batch.services.store.write(name, named, batch.clock)
    batch.written.add(name)


def write_measured(batch: Batch, name: str, rows: pa.Table) -> None:
    """Write rows that are on the driver into the table, with the cluster's name and the batch's stamp."""
    batch.driver.tables.versions.pop(name, None)
    cluster = pa.array([batch.services.cluster] * rows.num_rows, pa.string())
    write_arrow(batch, name, rows.append_column("cluster", cluster))


def write_arrow(batch: Batch, name: str, rows: pa.Table) -> None:
    """Write rows that are on the driver, which have the cluster's name and the batch's time and number."""
    batch.services.store.write_arrow(name, rows, batch.clock)
    batch.written.add(name)


def stamped(batch: Batch, rows: pa.Table) -> pa.Table:
    """The rows with time and number of the batch."""
    columns = {"updated_at": moment(batch.clock.at_ms), "batch_id": pa.scalar(batch.batch_id, pa.int64())}
    for name, value in columns.items():
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows
