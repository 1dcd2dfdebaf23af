"""Store: Arrow tables in the form in which they can be written."""

from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

# Spark 4.2 takes the zone of timestamps; before, it was UTC.
_ZONE: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns of a table as Arrow has them; times are in UTC."""
    return to_arrow_schema(schema, **_ZONE)


def columns_of(rows: pa.Table, schema: StructType) -> pa.Table:
    """The columns of `schema` in its order and types."""
    columns = arrow_schema(schema)
    return rows.select(columns.names).cast(columns)


def shaped(rows: pa.Table, schema: StructType) -> pa.Table:
    """Return the columns as `columns_of` does, but in newly allocated memory.

    Spark's JVM omits the offsets of lists and texts that are entirely empty, as the format allows. arrow-rs, under
    delta-rs, reads one offset anyway, from arbitrary memory. Arrays made by `take` have it.
    """
    cast = columns_of(rows, schema)
    return cast.take(pa.array(range(cast.num_rows), pa.int64()))
