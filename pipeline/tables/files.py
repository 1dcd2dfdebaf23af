"""Store: data files that a task writes, for the driver to commit."""

import json
import time
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from pipeline.tables.arrow import columns_of
from pipeline.tables.encoding import by_pyarrow
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import BY_NAME


def write_file(tables: Tables, name: str, rows: pa.Table, *, key: str) -> AddAction:
    """Write a data file of a table; until it is committed, no reader knows of it, and maintenance may remove it.

    Args:
        tables: Where.
        name: Table, which is not partitioned.
        rows: One or more, with all its columns, in any order.
        key: A text column by whose least and greatest value readers pass over the file.

    Returns:
        What a commit says of it.
    """
    path = f"part-{uuid4()}.parquet"
    folder, schema = tables.folder(name), BY_NAME[name].schema
    with folder.open_output_stream(path) as file:
        pq.write_table(columns_of(rows, schema), file, **by_pyarrow(schema))
    span = pc.min_max(rows[key]).as_py()
    stats = {
        "numRecords": rows.num_rows,
        "minValues": {key: span["min"]},
        "maxValues": {key: span["max"]},
        "nullCount": {key: 0},
    }
    return AddAction(
        path=path,
        size=folder.get_file_info(path).size,
        partition_values={},
        modification_time=time.time_ns() // 1_000_000,
        data_change=True,
        # arrow-rs, under delta-rs, reads another character for an escaped one beyond U+1FFFF, and rows would be missed.
        stats=json.dumps(stats, ensure_ascii=False),
    )
