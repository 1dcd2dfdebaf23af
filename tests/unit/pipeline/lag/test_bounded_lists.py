import numpy as np
import pyarrow as pa
import pytest

from pipeline.lag import bounded_lists
from pipeline.lag.lag import UNKNOWN
from tests.support.job.measures import ints

KIND = bounded_lists.list_type(required=("a",), optional=("b",))


def column(*rows: list[tuple[int, int | None]] | None) -> pa.ListArray:
    lists = [None if row is None else [{"a": a, "b": b} for a, b in row] for row in rows]
    return pa.array(lists, type=KIND)


def test_entries_stand_left_and_unknown_behind() -> None:
    (a, b), count = bounded_lists.from_arrow(column([(1, None), (2, 20)], []), KIND, width=3)

    assert count.tolist() == [2, 0]
    assert a.tolist() == [[1, 2, UNKNOWN], [UNKNOWN] * 3]
    assert b.tolist() == [[UNKNOWN, 20, UNKNOWN], [UNKNOWN] * 3]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([[(1, 10), (2, 20)], [(3, 30)], []], id="of many lengths"),
        pytest.param([[(1, 10), (2, None)], [(3, 30), (4, 40)]], id="full, one value null"),
        pytest.param([[], []], id="empty"),
        pytest.param([], id="without rows"),
    ],
)
def test_column_survives_the_round_trip(rows: list[list[tuple[int, int | None]]]) -> None:
    original = column(*rows)

    matrices, count = bounded_lists.from_arrow(original, KIND, width=2)
    back = bounded_lists.to_arrow(matrices, count, KIND)

    assert back.equals(original)
    assert back.type == KIND
    back.validate(full=True)


def test_slice_gives_its_own_rows_only() -> None:
    whole = column([(1, 10)], [(2, 20), (3, 30)], [(4, 40)], [(5, 50)])

    (a, _), count = bounded_lists.from_arrow(whole.slice(1, 2), KIND, width=2)

    assert count.tolist() == [2, 1]
    assert a.tolist() == [[2, 3], [4, UNKNOWN]]


def test_null_list_is_empty_even_with_entries_hidden_behind_it() -> None:
    entries = column([(1, 10), (2, 20), (3, 30)]).values
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 3], type=pa.int32()), entries, type=KIND, mask=pa.array([True, False])
    )

    (a, _), count = bounded_lists.from_arrow(hidden, KIND, width=2)

    assert count.tolist() == [0, 1]
    assert a.tolist() == [[UNKNOWN, UNKNOWN], [3, UNKNOWN]]


def test_list_longer_than_the_width_keeps_its_last_entries() -> None:
    (a, b), count = bounded_lists.from_arrow(
        column([(1, 10), (2, 20), (3, 30)], [(4, 40)], [(5, 50), (6, 60)]), KIND, width=2
    )

    assert count.tolist() == [2, 1, 2]
    assert a.tolist() == [[2, 3], [4, UNKNOWN], [5, 6]]
    assert b.tolist() == [[20, 30], [40, UNKNOWN], [50, 60]]


def test_full_lists_are_not_copied() -> None:
    original = column([(1, 10), (2, 20)], [(3, 30), (4, 40)])

    (a, b), count = bounded_lists.from_arrow(original, KIND, width=2)
    back = bounded_lists.to_arrow([a, b], count, KIND)

    assert np.shares_memory(a, original.values.field("a").to_numpy())
    assert np.shares_memory(b, back.values.field("b").to_numpy())


def test_entry_outside_the_row_is_unknown() -> None:
    matrix = ints([1, 2, 3, None]).reshape(2, 2)

    assert bounded_lists.entry(matrix, ints([-1, 1])).tolist() == [UNKNOWN, UNKNOWN]
    assert bounded_lists.entry(matrix, ints([1, 0])).tolist() == [2, 3]
