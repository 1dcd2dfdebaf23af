"""What one task hands on of the records that cannot be read."""

import pyarrow as pa
import pytest

from pipeline.decode.bounded import Bounded


def rows(*sizes: int | None) -> pa.RecordBatch:
    """Records whose keys have these lengths, and whose values have one byte more."""
    keys = [None if size is None else b"k" * size for size in sizes]
    values = [None if size is None else b"v" * (size + 1) for size in sizes]
    return pa.record_batch({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})


@pytest.mark.parametrize(
    ("most_rows", "most_bytes", "taken"),
    [(9, 100, [3, 2]), (4, 100, [3, 1]), (2, 100, [2, 0]), (9, 42, [2, 1]), (9, 41, [1, 2])],
)
def test_rows_are_taken_until_there_are_too_many_or_too_large_ones(
    most_rows: int, most_bytes: int, taken: list[int]
) -> None:
    room = Bounded(rows=most_rows, bytes_=most_bytes)

    first, second = room.taken(rows(10, 10, 10)), room.taken(rows(None, 7))

    assert [first.num_rows, second.num_rows] == taken


def test_first_row_is_taken_however_large_it_is() -> None:
    room = Bounded(rows=9, bytes_=0)

    assert [room.taken(rows(10, 10)).num_rows, room.taken(rows(None)).num_rows] == [1, 0]
    assert Bounded(rows=0, bytes_=9).taken(rows(1)).num_rows == 0
