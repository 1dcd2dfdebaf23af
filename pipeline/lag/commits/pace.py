"""Pace of a partition's commits: their interval, and their speed while there is a backlog.

Times are the group coordinator's. A speed between two commits counts the records read between them, whenever they were
observed: unlike a moving average over observations it remembers nothing earlier, and nothing of another owner.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.lag.bounded_lists import entry
from pipeline.lag.commits.window import CommitWindow
from pipeline.lag.lag import UNKNOWN

_LEAST_GAPS: Final = 3
_LEAST_SPAN_MS: Final = 20_000
"""Two commits closer than this show little: the size of a single fetch determines their distance."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommitPace:
    """Pace of P partitions."""

    interval_s: Floats
    """``[P]``, seconds within which three of four commits follow the one before; nan with fewer than four commits.
    Commits are seen once per batch, so it is at least about a trigger interval."""
    rate: Floats
    """``[P]``, records/s from an earlier commit to the newest, >= 0; nan when no earlier one serves."""
    span_s: Floats
    """``[P]``, seconds between these two; nan like the rate."""
    least_lag: Int64s
    """``[P]``, least lag at a commit from the one to the other, records; UNKNOWN when one of them is."""


def commit_pace(window: CommitWindow) -> CommitPace:
    """Return the pace of the commits in the windows, whose ``lag`` is the lag at each commit.

    The earlier commit is the newest that is at least 20 s older than the last one. If offsets or times go back in
    between, there is no pace: the offsets were reset, or the coordinator has moved.
    """
    times, offsets = window.commit_timestamp_ms, window.committed_offset
    width, last = times.shape[1], window.count - 1
    newest_ms = entry(times, last)
    is_entry = np.arange(width) < window.count[:, None]
    is_older = is_entry & (times <= newest_ms[:, None] - _LEAST_SPAN_MS)
    # The last of them: commits stand in the order of their positions.
    base = np.where(is_older, np.arange(width), -1).max(axis=1)
    within = is_entry & (np.arange(width) >= base[:, None])
    gaps_ms, steps = np.diff(times), np.diff(offsets)
    falls = within[:, :-1] & is_entry[:, 1:] & ((gaps_ms < 0) | (steps < 0))
    known = (base >= 0) & (np.count_nonzero(falls, axis=1) == 0)
    span_s = np.where(known, (newest_ms - entry(times, base)) / 1000, np.nan)
    advance = np.where(known, entry(offsets, last) - entry(offsets, base), 0)
    return CommitPace(
        interval_s=_usual_gap_s(gaps_ms, is_entry[:, 1:]),
        rate=advance / span_s,
        span_s=span_s,
        # UNKNOWN is the smallest integer, so one that is unknown makes the least of them unknown.
        least_lag=np.where(known, np.where(within, window.lag, np.iinfo(np.int64).max).min(axis=1), UNKNOWN),
    )


def _usual_gap_s(gaps_ms: Int64s, is_gap: Bools) -> Floats:
    """The gap that three of four are within, s; nan where there are too few."""
    count = np.count_nonzero(is_gap, axis=1)
    # What is no gap is sorted behind those that are.
    ascending = np.sort(np.where(is_gap, np.maximum(gaps_ms, 0), np.iinfo(np.int64).max), axis=1)
    usual = entry(ascending, np.maximum((3 * count + 3) // 4 - 1, 0))
    return np.where(count >= _LEAST_GAPS, usual / 1000, np.nan)
