"""Ranges of a table's rows, by the values of one column, for tasks that take one each. Pure."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """The rows of a table in ranges of the values of one column."""

    column: str
    """A text column without nulls."""
    starts: tuple[str, ...]
    """The least value of each range but the first."""

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.starts) + 1

    def where(self, number: int) -> pc.Expression:
        """The rows of this range."""
        where = pc.scalar(True)
        if number > 0:
            where &= pc.field(self.column) >= self.starts[number - 1]
        if number < len(self.starts):
            where &= pc.field(self.column) < self.starts[number]
        return where

    def shares(self, rows: pa.Table) -> Iterator[pa.Table]:
        """The rows of each range."""
        encoded = rows[self.column].combine_chunks().dictionary_encode()
        of_value = [bisect_right(self.starts, value) for value in encoded.dictionary.to_pylist()]
        numbers = np.array(of_value, np.int64)[encoded.indices.to_numpy()]
        for number in range(self.count):
            yield rows.filter(pa.array(numbers == number))


def ranges_of(column: str, weights: Mapping[str, int], *, at_least: int, most_rows: int) -> Ranges:
    """Ranges of about as many rows each; the rows of one value stay together.

    Values are taken in their order, not placed (`placement`): a range is what a reader can ask for by two of them.

    Args:
        column: Of the table.
        weights: Rows by value of the column.
        at_least: This many ranges or a few more, if there are as many values.
        most_rows: Of a range of more than one value.
    """
    room = min(most_rows, -(-sum(weights.values()) // max(1, at_least)))
    starts: list[str] = []
    rows = 0
    for value, weight in sorted(weights.items()):
        if rows and rows + weight > room:
            starts.append(value)
            rows = 0
        rows += weight
    return Ranges(column=column, starts=tuple(starts))
