"""Lag in records from offsets, one entry per partition, unknown kept apart from 0.

All arrays are int64 of one shape ``[P]``. An offset is >= 0 or ``UNKNOWN``; a difference of two
offsets therefore never reaches ``UNKNOWN`` by itself.
"""

from typing import Final, Literal

import numpy as np

from assignor.model.arrays import Int64s

UNKNOWN: Final = int(np.iinfo(np.int64).min)
"""An integer that is not known. The smallest int64, so ``max`` with a known value passes it over."""

OffsetReset = Literal["latest", "earliest", "none"]
"""The values of a consumer's ``auto.offset.reset``."""


def difference(later: Int64s, earlier: Int64s) -> Int64s:
    """Return ``later - earlier``, which may be negative; UNKNOWN if either side is."""
    known = (later != UNKNOWN) & (earlier != UNKNOWN)
    return np.where(known, later - earlier, UNKNOWN)


def raw_lag(committed: Int64s, log_end: Int64s) -> Int64s:
    """Return log end minus committed offset, in records; UNKNOWN if either side is.

    Negative if the commit is newer than the observed log end, or the topic was truncated or
    recreated. ``kafka-consumer-groups.sh`` prints it as LAG.
    """
    return difference(log_end, committed)


def lag(committed: Int64s, log_start: Int64s, log_end: Int64s) -> Int64s:
    """Records that the group still can and has to read; >= 0, or UNKNOWN, never 0 for unknown.

    Args:
        committed: Committed offset; UNKNOWN gives UNKNOWN.
        log_start: First offset still in the log; UNKNOWN sets no floor.
        log_end: Log end offset; UNKNOWN gives UNKNOWN.

    Source: records below the log start are deleted, so no consumer reads them any more
        (``CalculateGroupLagWithStartOffsets`` of franz-go's kadm counts the same way).
    """
    known = (committed != UNKNOWN) & (log_end != UNKNOWN)
    # An unknown log start is the smallest integer, so it is no floor; a log end behind the commit is no negative lag.
    unread = np.maximum(log_end - np.maximum(committed, log_start), 0)
    return np.where(known, unread, UNKNOWN)


def assignor_lag(committed: Int64s, log_start: Int64s, log_end: Int64s, reset: OffsetReset) -> Int64s:
    """Return the lag for an assignor: a partition without a commit counts the records its reader will get.

    Without a commit the lag is 0 if ``reset`` is ``latest``, otherwise the whole log. It is >= 0,
    and UNKNOWN if the log end is, or if the whole log counts and the log start is unknown.

    Source: KIP-169.
    """
    is_committed, behind_commit = committed != UNKNOWN, lag(committed, log_start, log_end)
    if is_committed.all():
        return behind_commit
    # From the log start everything is read: the lag of a group that has committed just that.
    nothing = np.where(log_end != UNKNOWN, 0, UNKNOWN)
    uncommitted = nothing if reset == "latest" else lag(log_start, log_start, log_end)
    return np.where(is_committed, behind_commit, uncommitted)
