"""What a group has been able to read, where a transaction is open: as far as the last stable offset.

A consumer with `isolation.level=read_committed` stops there until the transaction ends, and is not behind by what
follows. Which isolation a group has no broker knows, so what it may not have been able to read is no evidence that it
is slow, until it commits beyond the last stable offset, which only a consumer that reads uncommitted records can.
"""

import numpy as np

from assignor.model.arrays import Int64s
from pipeline.lag.lag import UNKNOWN, difference


def readable_offset(last_stable: Int64s, *, stable_before: Int64s, end_before: Int64s) -> Int64s:
    """Up to where a read_committed consumer has been able to read for some time, ``[P]``; UNKNOWN without an answer.

    What a transaction held back at the look before, and does no longer, has just become readable: nobody is behind by
    it yet.

    Args:
        last_stable: Last stable offset now.
        stable_before: That of the look before.
        end_before: Log end at the look before.
    """
    held_before = difference(end_before, stable_before)
    is_known = (last_stable != UNKNOWN) & (held_before != UNKNOWN)
    settled = np.maximum(last_stable - np.maximum(held_before, 0), np.minimum(stable_before, last_stable))
    return np.where(is_known, settled, last_stable)


def readable_end(readable: Int64s, last_stable: Int64s, *, committed: Int64s, log_end: Int64s) -> Int64s:
    """Log end as the group meets it, ``[P]``.

    Args:
        readable: `readable_offset`.
        last_stable: Last stable offset, asked for after the commits were read.
        committed: Committed offset.
        log_end: Log end offset.
    """
    reads_all = (readable == UNKNOWN) | ((last_stable != UNKNOWN) & (committed > last_stable))
    return np.where(reads_all, log_end, np.minimum(log_end, np.maximum(readable, committed)))
