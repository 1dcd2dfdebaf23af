"""The offset up to which a group could read despite open transactions: the last stable offset.

A consumer with `isolation.level=read_committed` stops there until the transaction ends, and later records are not its
backlog. No broker knows a group's isolation level, so records that it may not have been able to read are no evidence
that it is slow, until it commits beyond the last stable offset: only a consumer of uncommitted records can do that.
"""

import numpy as np

from assignor.model.arrays import Int64s
from pipeline.lag.lag import UNKNOWN, difference


def readable_offset(last_stable: Int64s, *, stable_before: Int64s, end_before: Int64s) -> Int64s:
    """Return the offset that a read_committed consumer has been able to reach for some time, ``[P]``.

    UNKNOWN without an answer. Records that a transaction held back at the previous observation have just become
    readable: no consumer is behind by them yet.

    Args:
        last_stable: Last stable offset now.
        stable_before: Last stable offset at the previous observation.
        end_before: Log end at the previous observation.
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
