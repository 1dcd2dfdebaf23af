"""Rows of several Arrow tables that have the same key, found by sorting. Pure."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assignor.model.arrays import Int64s

PARTITION_KEY = ("topic", "partition")
LAG_KEY = ("group_id", *PARTITION_KEY)
NO_ROW = -1


def codes(key: Sequence[str], *tables: pa.Table) -> list[Int64s]:
    """The key of each row of each table as a number; numbers are equal where keys are.

    Args:
        key: Columns, none of them null. The product of how many values they have must stay below 2^63.
        tables: With these columns, of the same types.
    """
    sizes = [table.num_rows for table in tables]
    combined = np.zeros(sum(sizes), np.int64)
    for name in key:
        encoded = _column(name, tables).dictionary_encode()
        combined = combined * len(encoded.dictionary) + encoded.indices.to_numpy()
    return np.split(combined, np.cumsum(sizes)[:-1])


def matched(*tables: Int64s) -> list[Int64s]:
    """A full outer join: for each key, ascending, its row in each table, `NO_ROW` where the table has none.

    Args:
        tables: `codes`, each key once in each table.
    """
    keys = np.unique(np.concatenate(tables))
    found: list[Int64s] = []
    for table in tables:
        rows = np.full(len(keys), NO_ROW, np.int64)
        rows[np.searchsorted(keys, table)] = np.arange(len(table))
        found.append(rows)
    return found


def looked_up(wanted: Int64s, table: Int64s) -> Int64s:
    """A left join: the row of each wanted key in the table, `NO_ROW` where there is none.

    Args:
        wanted: `codes`, in any number.
        table: `codes`, each key once.
    """
    keys, which = np.unique(np.concatenate([wanted, table]), return_inverse=True)
    rows = np.full(len(keys), NO_ROW, np.int64)
    rows[which[len(wanted) :]] = np.arange(len(table))
    return rows[which[: len(wanted)]]


def last_of_each(key: Int64s, *ranks: npt.NDArray[Any]) -> Int64s:
    """For each key, ascending, the row that ranks highest: by the first of `ranks`, then by the next.

    Args:
        key: `codes`, in any number.
        ranks: Arrays that can be sorted.
    """
    order = np.lexsort((*reversed(ranks), key))
    is_last = np.append(np.diff(key[order]) != 0, True)[: len(order)]
    rows: Int64s = order[is_last]
    return rows


def newest_of_groups(rows: pa.Table, time: str) -> pa.Table:
    """The row of each group with the latest time.

    Args:
        rows: With `group_id`.
        time: Column of timestamps, none of them null.
    """
    (group,) = codes(("group_id",), rows)
    return rows.take(pa.array(last_of_each(group, rows[time].cast(pa.int64()).to_numpy())))


def key_columns(
    key: Sequence[str], tables: Sequence[pa.Table], rows: Sequence[Int64s]
) -> dict[str, pa.Array]:
    """The columns of the key of `matched` rows, from whichever table has it."""
    first = np.full(len(rows[0]), NO_ROW, np.int64)
    begin = 0
    for table, own in zip(tables, rows, strict=True):
        first = np.where((first == NO_ROW) & (own != NO_ROW), own + begin, first)
        begin += table.num_rows
    return {name: _column(name, tables).take(pa.array(first)) for name in key}


def struct(table: pa.Table, names: Sequence[str]) -> pa.StructArray:
    """Columns of a table as one."""
    return pa.StructArray.from_arrays([table[name].combine_chunks() for name in names], names=list(names))


def taken(column: pa.Array, rows: Int64s) -> pa.Array:
    """These rows of the column, null where there is no row."""
    return column.take(pa.array(rows, mask=rows == NO_ROW))


def _column(name: str, tables: Sequence[pa.Table]) -> pa.Array:
    return pa.concat_arrays([table[name].combine_chunks() for table in tables])
