"""Arrow columns to and from the arrays of `assignor`: null <-> UNKNOWN or nan, timestamps <-> ms."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.arrow_columns import TIMESTAMP, bools
from pipeline.lag.lag import UNKNOWN

_HALF = np.uint64(2**31)
"""Half of the last binary digit that is kept."""


def int64s(column: pa.Array) -> Int64s:
    """Return integers, UNKNOWN for null."""
    values: Int64s = pc.fill_null(column.cast(pa.int64()), UNKNOWN).to_numpy(zero_copy_only=False)
    return values


def floats(column: pa.Array) -> Floats:
    """Return floats, nan for null."""
    values: Floats = pc.fill_null(column, np.nan).to_numpy(zero_copy_only=False)
    return values


def millis(column: pa.Array) -> Int64s:
    """Return timestamps as ms since the epoch, UNKNOWN for null."""
    # Floor division takes UNKNOWN to another number, which would count as a time.
    micros = int64s(column.cast(TIMESTAMP).cast(pa.int64()))
    return np.where(micros == UNKNOWN, UNKNOWN, micros // 1000)


def from_int64s(values: Int64s) -> pa.Array:
    """Return an int64 column, null for UNKNOWN."""
    return pa.array(values, mask=values == UNKNOWN)


def from_floats(values: Floats) -> pa.Array:
    """Return a float64 column, rounded to a millionth of each value, null for nan.

    Rates and ages are not more exact, and the further digits would be half of a row's size on disk.
    """
    return pa.array(_rounded(values), mask=np.isnan(values))


def _rounded(values: Floats) -> Floats:
    """Round to 20 of the 52 binary digits, so that the lower half of the bytes is zero. nan stays nan."""
    bits = np.ascontiguousarray(values, np.float64).view(np.uint64)
    rounded: Floats = ((bits + _HALF) & ~(2 * _HALF - np.uint64(1))).view(np.float64)
    return rounded


def from_millis(values: Int64s) -> pa.Array:
    """Return a timestamp column (UTC, µs) from ms since the epoch, null for UNKNOWN."""
    # UNKNOWN times 1000 overflows, and numpy would not say so.
    unknown = values == UNKNOWN
    return pa.array(np.where(unknown, 0, values) * 1000, mask=unknown).cast(TIMESTAMP)


def field(structs: pa.Array, name: str) -> pa.Array:
    """Return a field of a struct column, null if the struct is."""
    return pc.struct_field(structs, name)


def differ(column: pa.Array, other: pa.Array) -> Bools:
    """Return where both values are known and differ."""
    return bools(pc.not_equal(column, other))


def known_or(values: Int64s, otherwise: int) -> Int64s:
    """Replace UNKNOWN values by another one."""
    return np.where(values == UNKNOWN, otherwise, values)
