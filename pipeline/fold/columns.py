"""Fold: row masks and reasons from Arrow columns."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools
from pipeline.arrow_columns import bools, is_set

BEHEADED = (
    "records were deleted from the beginning of its partition of the offsets topic, and no later record and no "
    "broker has confirmed it yet"
)


def still_confirmed(confirmed: pa.Array, partition: pa.Array, reread: Sequence[int]) -> Bools:
    """Return which confirmed rows stay so while `reread` partitions of the offsets topic are read from their start."""
    # Of a row without a partition nobody knows whether it is among them.
    return bools(confirmed) & ~(is_in(partition, reread) | (bool(reread) & ~is_set(partition)))


def why_unconfirmed(
    before: pa.Array, confirmed: Bools, partition: pa.Array, reread: Sequence[int], beheaded: Sequence[int]
) -> pa.Array:
    """Return why each row may be out of date but is kept; null for rows that are up to date or not kept.

    `beheaded` partitions, of those `reread`, have lost their beginning: what is not found there is not gone.
    """
    is_beheaded = is_in(partition, beheaded) | (bool(beheaded) & ~is_set(partition))
    kept = pc.if_else(pa.array(is_in(partition, reread)), pa.scalar(None, pa.string()), before)
    reasons = pc.if_else(pa.array(is_beheaded), pa.scalar(BEHEADED), kept)
    return pc.if_else(pa.array(confirmed), pa.scalar(None, pa.string()), reasons)


def may_be_met(partition: pa.Array, behind: Sequence[int]) -> Bools:
    """Return which rows may have a record in a partition of the offsets topic that is not read to its end."""
    return is_in(partition, behind) | (bool(behind) & ~is_set(partition))


def is_in(column: pa.Array, numbers: Sequence[int]) -> Bools:
    """Return where the value is one of these; False for null."""
    return bools(pc.is_in(column, value_set=pa.array(numbers, column.type)))
