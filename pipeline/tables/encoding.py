"""Store: how columns are laid out in data files, which decides what a day of them takes on the disk.

Zstandard finds in plain numbers what they share with their neighbours: offsets of one size, lists that repeat. A
dictionary takes that away, and is itself as large as the column when nearly all its values differ. Measured on a large
table it costs twice the bytes. Texts have few values, and keep theirs. Nothing here is newer than what Spark 3 reads;
`BYTE_STREAM_SPLIT` would save another tenth, and Spark cannot read it for integers.
"""

from typing import Any, Final

from deltalake import ColumnProperties, WriterProperties
from pyspark.sql import types as t

_COMPRESSION: Final = "ZSTD"
_LEVEL = 1
_DICTIONARY_BYTES = 16 * 2**20
"""A larger one is given up. By default that is 1 MB, which the ids of 20,000 members exceed."""


def by_delta_rs(schema: t.StructType) -> WriterProperties:
    """What delta-rs writes files of a table with."""
    texts = _texts(schema)
    return WriterProperties(
        compression=_COMPRESSION,
        compression_level=_LEVEL,
        dictionary_page_size_limit=_DICTIONARY_BYTES,
        default_column_properties=ColumnProperties(dictionary_enabled=False),
        column_properties=dict.fromkeys(texts, ColumnProperties(dictionary_enabled=True)) or None,
    )


def by_pyarrow(schema: t.StructType) -> dict[str, Any]:
    """The same as arguments of `pyarrow.parquet.write_table`."""
    return {
        "compression": _COMPRESSION,
        "compression_level": _LEVEL,
        "dictionary_pagesize_limit": _DICTIONARY_BYTES,
        "use_dictionary": _texts(schema),
    }


def _texts(schema: t.StructType) -> list[str]:
    return [field.name for field in schema if isinstance(field.dataType, t.StringType)]
