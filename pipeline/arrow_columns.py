"""What is asked of Arrow columns everywhere: which rows are true, which are known; and the type of times. Pure."""

import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools

TIMESTAMP = pa.timestamp("us", tz="UTC")
"""Type of every time in the tables."""


def moment(at_ms: int) -> pa.Scalar:
    """A time in ms since the epoch, as the tables have it."""
    return pa.scalar(at_ms * 1000, TIMESTAMP)


def bools(column: pa.Array) -> Bools:
    """Booleans, False where null."""
    values: Bools = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return values


def is_set(column: pa.Array) -> Bools:
    """Where it is not null."""
    known: Bools = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return known
