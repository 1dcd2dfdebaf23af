"""Arrow tables that come from Spark's JVM."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import types as t

from pipeline.tables.arrow import shaped

_NOTHING = pa.py_buffer(b"")
_MEMBER = t.StructType(
    [t.StructField("id", t.StringType()), t.StructField("topics", t.ArrayType(t.StringType()))]
)
_SCHEMA = t.StructType(
    [t.StructField("members", t.ArrayType(_MEMBER)), t.StructField("group", t.StringType())]
)


def of_the_jvm(n_rows: int) -> pa.Table:
    """Groups without members: no member has an id or topics, so these lists have no offsets, not even the first one."""
    texts = pa.StringArray.from_buffers(0, _NOTHING, _NOTHING)
    topics = pa.Array.from_buffers(pa.list_(pa.string()), 0, [None, _NOTHING], children=[texts])
    members = pa.StructArray.from_arrays([texts, topics], names=["id", "topics"])
    offsets = pa.py_buffer(struct.pack(f"<{n_rows + 1}i", *[0] * (n_rows + 1)) if n_rows else b"")
    lists = pa.Array.from_buffers(pa.list_(members.type), n_rows, [None, offsets], children=[members])
    return pa.table({"group": pa.array(["g"] * n_rows, pa.string()), "members": lists})


def arrays(array: pa.Array) -> Iterator[pa.Array]:
    """The array and all below it."""
    yield array
    if pa.types.is_list(array.type):
        yield from arrays(array.values)
    elif pa.types.is_struct(array.type):
        for number in range(array.type.num_fields):
            yield from arrays(array.field(number))


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_lists_and_texts_have_the_offsets_that_delta_rs_reads(n_rows: int, tmp_path: Path) -> None:
    rows = shaped(of_the_jvm(n_rows), _SCHEMA)

    for column in rows.columns:
        for chunk in column.chunks:
            for array in arrays(chunk):
                if pa.types.is_list(array.type) or pa.types.is_string(array.type):
                    assert array.buffers()[1].size >= 4 * (len(array) + 1)
    write_deltalake(str(tmp_path), rows)
    stored = DeltaTable(str(tmp_path)).to_pyarrow_table()
    assert stored.to_pylist() == [{"members": [], "group": "g"}] * n_rows
