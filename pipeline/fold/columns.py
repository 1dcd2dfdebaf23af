"""Fold: what Arrow columns say of each row."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools


def still_confirmed(confirmed: pa.Array, partition: pa.Array, reread: Sequence[int]) -> Bools:
    """Which rows are confirmed although some partitions of the offsets topic are read from their start.

    Args:
        confirmed: Which were.
        partition: Of the offsets topic, by row.
        reread: Those that are read again.
    """
    # Of a row without a partition nobody knows whether it is among them.
    return true(confirmed) & ~(is_in(partition, reread) | (bool(reread) & ~known(partition)))


def is_in(column: pa.Array, numbers: Sequence[int]) -> Bools:
    """Where it is one of these; not where it is null."""
    return true(pc.is_in(column, value_set=pa.array(numbers, column.type)))


def known(column: pa.Array) -> Bools:
    """Where it is not null."""
    is_known: Bools = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return is_known


def true(column: pa.Array) -> Bools:
    """Where it is true; not where it is null."""
    is_true: Bools = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return is_true
