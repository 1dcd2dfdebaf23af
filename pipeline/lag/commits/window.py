"""Bounded window of the last commits per partition: what the status is judged by."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from assignor.model.arrays import Bools, Int64s
from pipeline.lag import bounded_lists
from pipeline.lag.bounded_lists import Lists, rewritten
from pipeline.lag.lag import UNKNOWN

WINDOW_SIZE: Final = 10
"""Commits kept, as many as Burrow's default of ``intervals``."""

WINDOW_TYPE: Final = bounded_lists.list_type(
    required=("committed_offset", "commit_timestamp_ms"), optional=("lag",)
)
"""The Arrow form of the windows; a lag that was unknown is null."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommitWindow(Lists):
    """Windows of P partitions as dense matrices, in the order of commit positions, oldest first."""

    committed_offset: Int64s
    """``[P, W]``."""
    commit_timestamp_ms: Int64s
    """``[P, W]``, the group coordinator's clock; may go back when the coordinator moves."""
    lag: Int64s
    """``[P, W]``, records, as it was when the commit was made (``at_commit``); may be UNKNOWN."""


def from_arrow(lists: pa.ListArray) -> CommitWindow:
    """Windows of a column of ``WINDOW_TYPE``; a null list is an empty window."""
    (committed, timestamps, lags), count = bounded_lists.from_arrow(lists, WINDOW_TYPE, width=WINDOW_SIZE)
    return CommitWindow(committed_offset=committed, commit_timestamp_ms=timestamps, lag=lags, count=count)


def to_arrow(window: CommitWindow) -> pa.ListArray:
    """The windows as a column of ``WINDOW_TYPE``, without null lists."""
    matrices = (window.committed_offset, window.commit_timestamp_ms, window.lag)
    return bounded_lists.to_arrow(matrices, window.count, WINDOW_TYPE)


def without_raw_lag(window: CommitWindow, where: Bools) -> CommitWindow:
    """Return the windows; where `where` (``[P]``) holds, without lags that were measured when a commit was seen.

    Such a lag is at least the lag at the commit, so one of 0 stays.
    """
    return replace(window, lag=np.where(where[:, None] & (window.lag > 0), UNKNOWN, window.lag))


def append_commit(
    window: CommitWindow, *, committed: Int64s, commit_timestamp_ms: Int64s, lag: Int64s, is_new: Bools
) -> CommitWindow:
    """Append each row's newest commit to its window; a full window loses its oldest.

    A row whose offset is UNKNOWN has no commit (any more): its window is emptied, so that what a group
    did before its offsets were deleted is not held against its new commits.

    Args:
        window: P windows.
        committed: ``[P]``, committed offset.
        commit_timestamp_ms: ``[P]``, time of that commit, ms since the epoch; known where ``committed`` is.
        lag: ``[P]``, lag at that commit, records; may be UNKNOWN. Where nothing is new it is that of the newest one
            in the window, which keeps what it has for UNKNOWN.
        is_new: ``[P]``, the commit position differs from the one appended last. A commit of the same
            offset at a new position counts: that is how a stalled consumer looks.
    """
    width = window.lag.shape[1]
    # A row is in one of three cases, which masks tell apart: commits deleted, one appended, nothing new.
    is_gone = committed == UNKNOWN
    added = is_new & ~is_gone
    is_full = added & (window.count == width)
    kept = np.where(is_gone, 0, window.count - is_full)
    # Index `width` is behind every entry: nothing is dropped.
    dropped = np.where(is_full, 0, width)
    write = partial(rewritten, count=window.count, dropped=dropped, kept=kept, added=added)
    lags = write(window.lag, lag)
    stands = np.flatnonzero(~added & (kept > 0) & (lag != UNKNOWN))
    lags[stands, kept[stands] - 1] = lag[stands]
    return CommitWindow(
        committed_offset=write(window.committed_offset, committed),
        commit_timestamp_ms=write(window.commit_timestamp_ms, commit_timestamp_ms),
        lag=lags,
        count=kept + added,
    )
