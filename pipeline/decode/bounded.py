"""Decode: how much of what cannot be read one task hands on; the rest is only counted."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Int64s

LEFT_OUT = "left_out"
"""Kind of the row that counts the records of a batch for which there was no room."""


class Bounded:
    """Rows of kind 'bad' up to a count and a size in bytes; the first one always, however large it is."""

    def __init__(self, *, rows: int, bytes_: int) -> None:
        self._rows = rows
        self._bytes = bytes_
        self._is_first = True

    def taken(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The first of these rows, as far as there is room for them."""
        sizes = _lengths(rows["key"]) + _lengths(rows["value"])
        fits = int(np.searchsorted(np.cumsum(sizes), self._bytes, side="right"))
        taken = rows.slice(0, min(max(fits, int(self._is_first)), self._rows))
        self._is_first &= not taken.num_rows
        self._rows -= taken.num_rows
        self._bytes -= int(np.sum(sizes[: taken.num_rows]))
        return taken


def _lengths(column: pa.Array) -> Int64s:
    lengths: Int64s = pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.int64)
    return lengths
