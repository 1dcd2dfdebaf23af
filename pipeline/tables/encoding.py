"""Store: encodings of columns in data files, which determine the size of a day on disk.

Zstandard compresses plain numbers by what they share with their neighbours: offsets of one size, lists that repeat. A
dictionary hides that, and is itself as large as the column if nearly all values differ. On a large table it doubled the
size. Texts have few distinct values, and keep their dictionary. Spark 3 can read all encodings used here;
`BYTE_STREAM_SPLIT` would save another tenth, but Spark cannot read it for integers.
"""

from typing import Any, Final

from deltalake import ColumnProperties, WriterProperties
from pyspark.sql import types as t

_COMPRESSION: Final = "ZSTD"
_LEVEL = 1
_DICTIONARY_BYTES = 16 * 2**20
"""A larger one is given up. By default that is 1 MB, which the ids of 20,000 members exceed."""


def by_delta_rs(schema: t.StructType) -> WriterProperties:
    """Return the writer properties of delta-rs for a table."""
    texts = _texts(schema)
    return WriterProperties(
        compression=_COMPRESSION,
        compression_level=_LEVEL,
        dictionary_page_size_limit=_DICTIONARY_BYTES,
        default_column_properties=ColumnProperties(dictionary_enabled=False),
        column_properties=dict.fromkeys(texts, ColumnProperties(dictionary_enabled=True)) or None,
    )


def by_pyarrow(schema: t.StructType) -> dict[str, Any]:
    """Return the same encodings as arguments of `pyarrow.parquet.write_table`."""
    return {
        "compression": _COMPRESSION,
        "compression_level": _LEVEL,
        "dictionary_pagesize_limit": _DICTIONARY_BYTES,
        "use_dictionary": _texts(schema),
    }


def _texts(schema: t.StructType) -> list[str]:
    return [field.name for field in schema if isinstance(field.dataType, t.StringType)]
