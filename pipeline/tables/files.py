"""Store: data files that a task writes, for the driver to commit."""

import json
import time
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction
from pyspark.sql.types import StructType

from pipeline.tables.arrow import columns_of
from pipeline.tables.encoding import by_pyarrow
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import BY_NAME, INDEXED_COLUMNS
from pipeline.tables.storage import folder_of


def write_file(tables: Tables, name: str, rows: pa.Table, *, key: str) -> AddAction:
    """Write a data file of a table; until it is committed, no reader sees it, and maintenance may remove it.

    Args:
        tables: Where.
        name: Table.
        rows: One or more, with all its columns, in any order; of a partitioned table, rows of one partition.
        key: A text column whose minimum and maximum let readers skip the file.

    Returns:
        The entry of a commit for the file.
    """
    table, folder = BY_NAME[name], tables.folder(name)
    partition = {column: str(rows[column][0]) for column in table.partition_by}
    in_file = StructType([field for field in table.schema if field.name not in partition])
    parent = "/".join(f"{column}={value}" for column, value in partition.items())
    path = f"{parent}/part-{uuid4()}.parquet".lstrip("/")
    if parent and folder_of(tables.root) is not None:
        folder.create_dir(parent)
    with folder.open_output_stream(path) as file:
        pq.write_table(columns_of(rows, in_file), file, **by_pyarrow(in_file))
        size = file.tell()
    # All that the table's log has a place for: deltalake takes a missing least value for a null one, and its own
    # datasets would pass over the file for every condition on that column.
    told = dict.fromkeys([*in_file.fieldNames()[:INDEXED_COLUMNS], key])
    spans = {column: pc.min_max(rows[column]).as_py() for column in told}
    known = {column: span for column, span in spans.items() if span["min"] is not None}
    stats = {
        "numRecords": rows.num_rows,
        "minValues": {column: span["min"] for column, span in known.items()},
        "maxValues": {column: span["max"] for column, span in known.items()},
        "nullCount": {column: rows[column].null_count for column in told},
    }
    return AddAction(
        path=path,
        size=size,
        partition_values=partition,
        modification_time=time.time_ns() // 1_000_000,
        data_change=True,
        # arrow-rs, under delta-rs, reads another character for an escaped one beyond U+1FFFF, and rows would be missed.
        stats=json.dumps(stats, ensure_ascii=False),
    )
