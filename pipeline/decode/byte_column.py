"""Numpy views over the buffers of an Arrow binary array: many records read with a few array operations."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int64s: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]


class ByteColumn:
    """One byte string per row, addressed by positions in the shared data buffer.

    Attributes:
        start: Position of the first byte of each row.
        end: Position after the last byte of each row.
        valid: False where the row is null.
    """

    __slots__ = ("_array", "_data", "end", "start", "valid")

    def __init__(self, array: pa.Array) -> None:
        _, offsets, data = array.buffers()
        wide = pa.types.is_large_binary(array.type)
        bounds = np.zeros(1, np.int64)
        if len(array):
            # A slice shares the buffers of its parent: only the offsets tell where its rows are.
            bounds = np.frombuffer(offsets, np.int64 if wide else np.int32)[array.offset :][: len(array) + 1]
        self._array = array
        self._data = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        self.start: Int64s = bounds[:-1].astype(np.int64)
        self.end: Int64s = bounds[1:].astype(np.int64)
        self.valid: Bools = array.is_valid().to_numpy(zero_copy_only=False)

    def integers(self, at: Int64s, form: str) -> Int64s:
        """One integer per row, read at the positions `at`.

        Args:
            at: Positions in the data buffer. One outside of it reads something meaningless instead of
                failing, so the caller checks against `end`, once, after all fields are read.
            form: Numpy name of the type on the wire, such as ">i4".
        """
        # An empty buffer, or one that is shorter than the field, holds no such integer anywhere.
        wire = np.dtype(form)
        places = self._data.size - wire.itemsize + 1
        if places <= 0:
            return np.zeros(at.size, np.int64)
        # A window starts at every byte, so the view overlaps itself and is not aligned; gathering from it
        # costs the same as from an aligned array and spares one gather per byte.
        windows: npt.NDArray[np.signedinteger] = np.ndarray((places,), wire, self._data, strides=(1,))
        return windows[np.clip(at, 0, places - 1)].astype(np.int64)

    def cut(self, *spans: tuple[Int64s, Int64s], where: Bools) -> list[pa.Array]:
        """Cut the bytes between two positions out of each row: one binary array per span, null outside `where`.

        Args:
            *spans: Start and end positions per row, inside the row and in the order of the data.
            where: Rows to cut. The spans of other rows may be anything.
        """
        rows, pieces = self.start.size, 2 * len(spans) + 1
        edges = np.empty((rows, pieces), np.int64)
        edges[:, 0] = self.start
        for number, (first, last) in enumerate(spans):
            # Offsets that go back would make the array invalid even where nobody takes from it.
            edges[:, 2 * number + 1] = np.where(where, first, self.start)
            edges[:, 2 * number + 2] = np.where(where, last, self.start)
        cells = self._recut(edges.ravel())
        wanted = [np.arange(2 * number + 1, rows * pieces, pieces) for number in range(len(spans))]
        return [cells.take(pa.array(indices, mask=~where)) for indices in wanted]

    def _recut(self, edges: Int64s) -> pa.Array:
        """The same data buffer as an array of other pieces: each edge begins one, the data ends the last.

        Taking from it lets Arrow copy the bytes, at a third of what an index per byte costs.
        """
        _, _, data = self._array.buffers()
        wide = pa.types.is_large_binary(self._array.type)
        end = self.end[-1:] if self.end.size else np.zeros(1, np.int64)
        bounds = np.concatenate([edges, end]).astype(np.int64 if wide else np.int32)
        buffers = [None, pa.py_buffer(bounds), data if data is not None else pa.py_buffer(b"")]
        return pa.Array.from_buffers(self._array.type, edges.size, buffers)


def as_text(raw: pa.Array) -> tuple[pa.Array, Bools]:
    """Binary as strings, and the rows that may not be UTF-8, which are null in it.

    Arrow validates a whole array or nothing. When it objects, every row that is not ASCII is doubted.
    """
    try:
        return raw.cast(pa.string()), np.zeros(len(raw), np.bool_)
    except pa.ArrowInvalid:
        unchecked = raw.cast(pa.string(), safe=False)
        ascii_only = pc.fill_null(pc.string_is_ascii(unchecked), fill_value=True)
        text = pc.if_else(ascii_only, unchecked, pa.scalar(None, pa.string()))
        return text, ~ascii_only.to_numpy(zero_copy_only=False)
