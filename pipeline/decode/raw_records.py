"""Decode: records as they were read, for decoders that take them one by one."""

import pyarrow as pa


def raw_records(records: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of a record."""
    columns = records.select(["topic", "partition", "offset", "timestamp", "key", "value"])
    # As microseconds: a producer may name a time after the year 9999, which no `datetime` can hold.
    return columns.set_column(3, "timestamp", columns["timestamp"].cast(pa.int64()))
