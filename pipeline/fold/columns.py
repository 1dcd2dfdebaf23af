"""Fold: what Arrow columns say of each row."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools
from pipeline.arrow_columns import bools, is_set


def still_confirmed(confirmed: pa.Array, partition: pa.Array, reread: Sequence[int]) -> Bools:
    """Which rows are confirmed although some partitions of the offsets topic are read from their start.

    Args:
        confirmed: Which were.
        partition: Of the offsets topic, by row.
        reread: Those that are read again.
    """
    # Of a row without a partition nobody knows whether it is among them.
    return bools(confirmed) & ~(is_in(partition, reread) | (bool(reread) & ~is_set(partition)))


def is_in(column: pa.Array, numbers: Sequence[int]) -> Bools:
    """Where it is one of these; not where it is null."""
    return bools(pc.is_in(column, value_set=pa.array(numbers, column.type)))
