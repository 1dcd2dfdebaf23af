"""Ranges of rows: each row is in one of them, and they are about as large."""

from collections import Counter

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.row_ranges import ranges_of

NAMES = st.text(st.sampled_from("aé\U0001f600z"), max_size=3)


@given(values=st.lists(NAMES), others=st.lists(NAMES), at_least=st.integers(1, 4), most=st.integers(1, 9))
def test_each_row_is_in_one_range_by_the_filter_and_by_the_share(
    values: list[str], others: list[str], at_least: int, most: int
) -> None:
    ranges = ranges_of("name", Counter(values), at_least=at_least, most_rows=most)
    rows = pa.table({"name": pa.array(values + others, pa.string())})

    shares = [share["name"].to_pylist() for share in ranges.shares(rows)]
    filtered = [
        ds.dataset(rows).to_table(filter=ranges.where(number))["name"].to_pylist()
        for number in range(ranges.count)
    ]

    assert shares == filtered
    assert sorted(name for share in shares for name in share) == sorted(values + others)


@given(
    weights=st.dictionaries(NAMES, st.integers(1, 20)), at_least=st.integers(0, 4), most=st.integers(1, 50)
)
def test_range_is_larger_than_allowed_only_if_it_is_one_value(
    weights: dict[str, int], at_least: int, most: int
) -> None:
    ranges = ranges_of("name", weights, at_least=at_least, most_rows=most)

    for share in ranges.shares(rows_of(weights)):
        names = share["name"].to_pylist()
        assert len(names) <= most or len(set(names)) == 1


@pytest.mark.parametrize(
    ("weights", "at_least", "most", "expected"),
    [
        ({"a": 1, "b": 1, "c": 1, "d": 1}, 2, 100, [2, 2]),
        ({"a": 1, "b": 1, "c": 1, "d": 1}, 1, 1, [1, 1, 1, 1]),
        ({"a": 100, "b": 1, "c": 1}, 2, 1000, [100, 2]),
        ({"a": 1, "b": 100}, 2, 10, [1, 100]),
        ({"a": 1, "b": 1, "c": 1}, 0, 10, [3]),
        ({}, 2, 10, [0]),
    ],
)
def test_ranges_are_about_as_large_and_values_stay_whole(
    weights: dict[str, int], at_least: int, most: int, expected: list[int]
) -> None:
    ranges = ranges_of("name", weights, at_least=at_least, most_rows=most)

    assert [share.num_rows for share in ranges.shares(rows_of(weights))] == expected


def rows_of(weights: dict[str, int]) -> pa.Table:
    return pa.table({"name": pa.array(list(Counter(weights).elements()), pa.string())})
