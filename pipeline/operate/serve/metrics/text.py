"""Samples as Prometheus text, written a column at a time: a loop over rows would be too slow for a cluster.

One line is `name{label="value",...} number`. Labels are written once for all families of the same rows.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/, text format 0.0.4.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.exposition import Family

Column: TypeAlias = pa.Array | pa.ChunkedArray


class Labels:
    """The label sets of rows."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        """Take columns of text or of whole numbers, by label.

        Null is written as the empty text, which Prometheus takes for a label that is not there.
        """
        self._columns = columns

    @cached_property
    def text(self) -> pa.Array:
        """`{label="value",...} ` of each row."""
        pieces: list[pa.Array | str] = []
        for number, (name, column) in enumerate(self._columns.items()):
            opening = '",' if number else "{"
            pieces += [f'{opening}{name}="', _escaped(column)]
        return pc.binary_join_element_wise(*pieces, '"} ', "")


def labels_of(rows: pa.Table, **columns: str) -> Labels:
    """Labels from columns of the rows; each pair is a label and its column."""
    return Labels({label: rows[column] for label, column in columns.items()})


def _escaped(column: Column) -> pa.Array:
    """The column as text in which nothing ends the label or the line. Names repeat, so each is escaped once."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    names = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    text = pc.cast(names.dictionary, pa.string())
    # The backslash first, or it would escape those of the other two again.
    for sign, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = pc.replace_substring(text, sign, written)
    return pc.fill_null(text.take(names.indices), "")


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """One family: a number for each label set, or null where it is unknown."""

    family: Family
    labels: Labels
    values: pa.Array

    @property
    def count(self) -> int:
        """Return the number of samples."""
        known: int = len(self.values) - self.values.null_count
        return known

    def text(self) -> bytes:
        """Return the lines, with the family's description first; empty without samples."""
        if not self.count:
            return b""
        labels, values = self.labels.text, self.values
        if values.null_count:
            known = values.is_valid()
            labels, values = labels.filter(known), values.filter(known)
        name = self.family.name
        lines = pc.binary_join_element_wise(name, labels, pc.cast(values, pa.string()), "\n", "")
        return self.family.header.encode() + _bytes(lines)


def samples(family: Family, labels: Labels, values: Column) -> Samples:
    """Return the samples of a family; NaN and negative numbers are unknown, and give no sample."""
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    is_sound = pc.greater_equal(whole, 0)  # Not of NaN either.
    if pa.types.is_floating(whole.type):
        is_sound = pc.and_(is_sound, pc.is_finite(whole))
    return Samples(family, labels, pc.if_else(pc.fill_null(is_sound, fill_value=False), whole, None))


def texts_of(found: Iterable[Samples]) -> dict[Family, bytes]:
    """The lines of each family, in the order of the families."""
    return {one.family: one.text() for one in found}


def _bytes(lines: pa.Array) -> bytes:
    """The texts one after the other, as bytes from memory."""
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    return bytes(memoryview(data)[ends[0] : ends[-1]])
