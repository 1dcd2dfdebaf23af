"""Short lists, one per row, as dense matrices: int64 ``[P, K]`` per field and a count ``[P]``.

Entries are on the left, oldest first; the ``K - count`` slots after them hold UNKNOWN. In Arrow
the same rows are ``list<struct<field: int64, ...>>``, where an unknown value is null.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools, Int64s
from pipeline.lag.lag import UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lists:
    """The lists of P partitions; all further fields are matrices."""

    count: Int64s
    """``[P]``, entries in each list."""


ListsT = TypeVar("ListsT", bound=Lists)


def rows_of(lists: ListsT, rows: Int64s) -> ListsT:
    """The lists of some partitions, by their indices."""
    return replace(lists, **{one.name: getattr(lists, one.name)[rows] for one in fields(lists)})


def emptied(lists: ListsT, where: Bools) -> ListsT:
    """Return the lists, emptied where `where` (``[P]``) holds."""
    matrices = {one.name: getattr(lists, one.name) for one in fields(lists) if one.name != "count"}
    none = {name: np.where(where[:, None], UNKNOWN, matrix) for name, matrix in matrices.items()}
    return replace(lists, **none, count=np.where(where, 0, lists.count))


def list_type(*, required: Sequence[str], optional: Sequence[str] = ()) -> pa.ListType:
    """The Arrow type of a list column with these int64 fields; the optional ones may be null."""
    fields = [pa.field(name, pa.int64(), nullable=False) for name in required]
    fields += [pa.field(name, pa.int64()) for name in optional]
    return pa.list_(pa.field("element", pa.struct(fields), nullable=False))


def from_arrow(lists: pa.ListArray, kind: pa.ListType, *, width: int) -> tuple[list[Int64s], Int64s]:
    """One matrix ``[P, width]`` per field of ``kind``, and the counts, of a list column (slices included).

    A null list is empty, and of a list longer than ``width`` the last entries are taken. Matrices
    are read-only views of the Arrow buffers when every list is full, copies otherwise.
    """
    lengths: Int64s = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), dtype=np.int64)
    # flatten() leaves out the entries outside a slice and those hidden behind a null list.
    entries = lists.flatten()
    if np.any(lengths > width):
        # One filter over all entries: slicing list by list would be a loop in Python.
        entries_to_end = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(entries))
        entries = entries.filter(pa.array(entries_to_end <= width))
        lengths = np.minimum(lengths, width)
    columns = [pc.struct_field(entries, field.name) for field in kind.value_type]
    return [_matrix(column, lengths, width) for column in columns], lengths


def to_arrow(matrices: Sequence[Int64s], count: Int64s, kind: pa.ListType) -> pa.ListArray:
    """The column of type ``kind`` that ``from_arrow`` reads back to the same matrices.

    The buffers of full, contiguous matrices without UNKNOWN are shared, not copied.
    """
    offsets = np.zeros(len(count) + 1, dtype=np.int32)
    np.cumsum(count, out=offsets[1:])
    columns = [_column(matrix, count) for matrix in matrices]
    entries = pa.StructArray.from_arrays(columns, fields=list(kind.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets), entries, type=kind)


def entry(matrix: Int64s, index: Int64s) -> Int64s:
    """Entry ``index`` of each row; UNKNOWN for an index behind the row's entries or below 0."""
    # numpy would count an index below 0 from the end.
    chosen: Int64s = matrix[np.arange(len(matrix)), np.maximum(index, 0)]
    return np.where(index >= 0, chosen, UNKNOWN)


def rewritten(
    matrix: Int64s, newest: Int64s, *, count: Int64s, dropped: Int64s, kept: Int64s, added: Bools
) -> Int64s:
    """A copy of ``matrix`` with one entry dropped, the end cut off, and one entry added, row by row.

    Args:
        matrix: ``[P, K]``.
        newest: The value to add, where ``added``.
        count: Entries now.
        dropped: Index of the entry to take out first; K takes out none.
        kept: Entries that stay after that, at most K - 1 where ``added``.
        added: Rows that get ``newest`` behind the kept entries.
    """
    width = matrix.shape[1]
    result = np.array(matrix)
    closing = np.flatnonzero(dropped < width)
    if closing.size:
        # Moves every entry behind the gap one slot down; the slot left over at the end is rewritten below.
        stays = np.arange(width - 1) < dropped[closing, None]
        result[closing, :-1] = np.where(stays, matrix[closing, :-1], matrix[closing, 1:])
    rows = np.flatnonzero(added)
    result[rows, kept[rows]] = newest[rows]
    size = kept + added
    cut = np.flatnonzero(size < count)
    result[cut] = np.where(np.arange(width) < size[cut, None], result[cut], UNKNOWN)
    return result


def _matrix(values: pa.Array, lengths: Int64s, width: int) -> Int64s:
    # fill_null copies even when there is nothing to fill.
    known = pc.fill_null(values, UNKNOWN) if values.null_count else values
    flat: Int64s = known.to_numpy()
    if len(flat) == len(lengths) * width:
        full: Int64s = flat.reshape(len(lengths), width)
        return full
    matrix = np.full((len(lengths), width), UNKNOWN, dtype=np.int64)
    matrix[np.arange(width) < lengths[:, None]] = flat
    return matrix


def _column(matrix: Int64s, count: Int64s) -> pa.Array:
    width = matrix.shape[1]
    is_full = count.sum() == matrix.size
    flat = matrix.reshape(-1) if is_full else matrix[np.arange(width) < count[:, None]]
    unknown = flat == UNKNOWN
    return pa.array(flat, mask=unknown if unknown.any() else None)
