"""Lag at the newest commit: how far behind the group was when it committed, not how long ago that was.

Between two commits lag grows by arrival rate times time, however fast the group reads. That growth is no backlog: a
consumer that commits once a minute shows up to a minute of arrivals and is never behind. At the moment of the commit
that part of the lag is 0.
"""

from typing import Final

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.lag.bounded_lists import entry, rows_of
from pipeline.lag.lag import UNKNOWN, lag
from pipeline.lag.readable import readable_end
from pipeline.lag.samples import Samples

CLOCK_ERROR_MS: Final = 5_000
"""How far the coordinator's clock, which stamps commits, may be ahead of ours or behind it, which stamps samples, and
still be read as the same time. A commit that shows to be further off has no bracket."""


def clock_error_records(arrival_rate: Floats | float) -> Floats:
    """Return the records that clocks which differ by ``CLOCK_ERROR_MS`` can simulate.

    Lag, or a change of it, up to this is no evidence that anything is behind, or falls behind.

    Args:
        arrival_rate: Records/s; nan and negative ones count as 0.
    """
    return np.fmax(arrival_rate, 0.0) * CLOCK_ERROR_MS / 1000


def lag_at_commit(
    samples: Samples,
    *,
    committed: Int64s,
    commit_ms: Int64s,
    log_start: Int64s,
    log_end: Int64s,
    readable: Int64s,
    last_stable: Int64s,
    most_gap_ms: int,
) -> Int64s:
    """Return the log end at the time of the commit less the committed offset, ``[P]`` records, 0 to the lag now.

    Records that a transaction held back until the last observation do not count: they were unreadable at the commit.

    UNKNOWN where the lag is, where the time of the commit is, where no two samples bracket that time closely enough,
    and where the group had committed more than there was even ``CLOCK_ERROR_MS`` later (the coordinator's clock is
    behind) or than there is now (the log was cut, or its end is an old one). A lag of 0 needs no bracket: the log end
    has not been further since.

    Args:
        samples: The rings, this batch's log end included.
        committed: Committed offset, or UNKNOWN.
        commit_ms: Time of the commit by the coordinator's clock, ms since the epoch, or UNKNOWN.
        log_start: First offset still in the log, or UNKNOWN.
        log_end: Log end now, or UNKNOWN.
        readable: See `readable.readable_offset`.
        last_stable: Last stable offset now, or UNKNOWN.
        most_gap_ms: See `log_end_at`.
    """
    now = lag(committed, log_start, log_end)
    then = lag(committed, log_start, log_end_at(samples, commit_ms, most_gap_ms=most_gap_ms))
    measured = np.where((now != UNKNOWN) & (then != UNKNOWN), np.minimum(then, now), UNKNOWN)
    caught_up = np.flatnonzero(measured == 0)
    early = caught_up[
        _is_before_its_records(rows_of(samples, caught_up), committed[caught_up], commit_ms[caught_up])
    ]
    measured[early] = UNKNOWN
    measured[now == 0] = 0
    could = lag(
        committed, log_start, readable_end(readable, last_stable, committed=committed, log_end=log_end)
    )
    measured = np.where(measured != UNKNOWN, np.minimum(measured, could), UNKNOWN)
    measured[committed > log_end] = UNKNOWN
    return measured


def _is_before_its_records(samples: Samples, committed: Int64s, commit_ms: Int64s) -> Bools:
    """Where even the first sample that is surely later than the commit has a lower log end."""
    reached = _reached(samples, commit_ms + CLOCK_ERROR_MS)
    later_end = entry(samples.log_end, np.minimum(reached, samples.count - 1))
    is_before: Bools = (reached < samples.count) & (later_end < committed)
    return is_before


def log_end_at(samples: Samples, at_ms: Int64s, *, most_gap_ms: int) -> Int64s:
    """Log end at a time, ``[P]``, on straight lines between the samples; UNKNOWN outside of them.

    Up to ``CLOCK_ERROR_MS`` behind the newest sample it is the end of that sample.

    Args:
        samples: P rings.
        at_ms: ``[P]``, ms since the epoch, or UNKNOWN.
        most_gap_ms: Between samples that are further apart the log end is UNKNOWN, unless it stayed the same: the
            driver was stopped or the leader silent, and a line says nothing of when the records came.
    """
    reached = _reached(samples, at_ms)
    last = samples.count - 1
    before, behind = np.maximum(reached - 1, 0), np.clip(reached, 0, np.maximum(last, 0))
    first_ms, first_end = entry(samples.observed_at_ms, before), entry(samples.log_end, before)
    duration_ms = entry(samples.observed_at_ms, behind) - first_ms
    fraction = np.where(duration_ms > 0, (at_ms - first_ms) / np.maximum(duration_ms, 1), 0.0)
    rise = entry(samples.log_end, behind) - first_end
    is_late = at_ms - entry(samples.observed_at_ms, last) > CLOCK_ERROR_MS
    is_line = (duration_ms <= most_gap_ms) | (rise == 0)
    known = (at_ms != UNKNOWN) & (samples.count > 0) & (reached > 0) & ~is_late & is_line
    return np.where(known, first_end + (np.minimum(fraction, 1.0) * rise).astype(np.int64), UNKNOWN)


def _reached(samples: Samples, at_ms: Int64s) -> Int64s:
    """How many samples are not after these times."""
    width = samples.log_end.shape[1]
    # The empty slots hold UNKNOWN, which no time is below.
    reached: Int64s = np.count_nonzero(samples.observed_at_ms <= at_ms[:, None], axis=1) - (
        width - samples.count
    )
    return reached
