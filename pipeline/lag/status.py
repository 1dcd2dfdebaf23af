"""Status of a partition in a group, by rules over its last commits instead of thresholds on lag.

The first rule that holds decides:

1. ``DELETED``        the topic does not exist (any more).
2. ``NOT_COMMITTED``  there is no commit.
3. ``UNKNOWN``        the log end is not known.
4. ``EXPIRED``        the next record to be read was below the log start before the commits were read: it was deleted
                      unread.
5. ``OK``             the lag is within the allowed lag.
6. ``STOP``           there has been something to read, and no commit, for longer than the window spans.
7. ``OK``             at one of the commits of the window the lag was within the allowed lag.
8. ``REWIND``         a commit of the window went back.
9. ``STALL``          all commits of the window, two or more, are of one offset.
10. ``WARN``          the lag at a commit, known for two of the window or more, never fell from one to the next.
11. ``OK``

Source: ``calculatePartitionStatus`` of linkedin/Burrow (``core/internal/evaluator/caching.go``): rules 5 to
11 are its rules in its order. Different on purpose: one commit alone is neither STALL nor WARN; a window
shorter than ``MIN_SPAN_MS`` counts as that long; where Burrow looks for a recent moment without lag in a few
broker offsets, rule 6 asks the ring of samples when the lag began.

Rules 5 and 6 use the present lag, rules 7 and 10 the lag at each commit (`at_commit`): later arrivals are no sign of a
slow consumer, however rarely it commits. A hanging consumer is still visible: its commits stop, or repeat one offset.
REWIND ends when the commit before the one that went back leaves the window, or turns into STOP when commits stop.
"""

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from assignor.model.arrays import Bools, Int8s, Int64s
from pipeline.lag.age import passage_of
from pipeline.lag.bounded_lists import entry, rows_of
from pipeline.lag.commits.window import CommitWindow
from pipeline.lag.lag import UNKNOWN, lag
from pipeline.lag.samples import Samples

MIN_SPAN_MS: Final = 45_000
"""Kafka's default session timeout: so long the group itself does not take a silent member for dead."""


class Status(IntEnum):
    """Codes of the statuses; ``STATUS_NAMES[code]`` is the word that tables show."""

    UNKNOWN = 0
    OK = 1
    WARN = 2
    STALL = 3
    STOP = 4
    REWIND = 5
    NOT_COMMITTED = 6
    EXPIRED = 7
    DELETED = 8


STATUS_NAMES: Final = tuple(status.name for status in Status)


class Offsets(NamedTuple):
    """Offsets of each partition, or UNKNOWN."""

    committed: Int64s
    log_start: Int64s
    """First one still in the log."""
    log_start_before: Int64s
    """The same at a time after which all commits were read: a commit below it stood while the record was deleted."""
    log_end: Int64s


def judge(
    window: CommitWindow,
    samples: Samples,
    offsets: Offsets,
    *,
    topic_exists: Bools,
    now_ms: int,
    allowed_lag: int,
) -> Int8s:
    """The status code of each partition, int8 ``[P]``, by the rules of this module.

    Args:
        window: Last commits, the present one included.
        samples: Rings of the log end, this batch's included.
        offsets: ``[P]`` each.
        topic_exists: ``[P]``.
        now_ms: Time of the batch, ms since the epoch.
        allowed_lag: Records of lag that count as caught up. A transaction marker takes an offset that no
            consumer commits past, so a drained group on a transactional topic keeps a lag of 1.
    """
    committed, log_start, log_start_before, log_end = offsets
    # Rules in reverse, the first that holds written last. Most partitions do not lag: their windows are not looked at.
    codes = np.full(len(committed), Status.OK, dtype=np.int8)
    lagging = np.flatnonzero(lag(committed, log_start, log_end) > allowed_lag)
    codes[lagging] = _judge_lagging(rows_of(window, lagging), rows_of(samples, lagging), now_ms, allowed_lag)
    codes[committed < log_start_before] = Status.EXPIRED
    codes[log_end == UNKNOWN] = Status.UNKNOWN
    codes[committed == UNKNOWN] = Status.NOT_COMMITTED
    codes[~topic_exists] = Status.DELETED
    return codes


def _judge_lagging(window: CommitWindow, samples: Samples, now_ms: int, allowed_lag: int) -> Int8s:
    """Rules 6 to 11, the last that holds written first."""
    codes = np.full(len(window.count), Status.OK, dtype=np.int8)
    codes[_lag_never_fell(window)] = Status.WARN
    codes[_stands_still(window)] = Status.STALL
    codes[_went_back(window)] = Status.REWIND
    codes[_was_caught_up(window, allowed_lag)] = Status.OK
    codes[_is_stopped(window, samples, now_ms, allowed_lag)] = Status.STOP
    return codes


def _is_stopped(window: CommitWindow, samples: Samples, now_ms: int, allowed_lag: int) -> Bools:
    timestamps = window.commit_timestamp_ms
    newest_ms = timestamps.max(axis=1)
    # A coordinator's clock may go back between two commits, so the first need not be the earliest.
    earliest_ms = np.where(timestamps != UNKNOWN, timestamps, newest_ms[:, None]).min(axis=1)
    span_ms = np.maximum(newest_ms - earliest_ms, MIN_SPAN_MS)
    last = window.count - 1
    lag_began = passage_of(samples, entry(window.committed_offset, last) + allowed_lag, now_ms=now_ms)
    # After a quiet hour the last commit is old; the consumer is late only from the first new record on.
    # A record that came between distant samples was certainly there at the later one, and maybe no sooner.
    began_ms = np.where(lag_began.is_unwatched, lag_began.latest_ms, lag_began.at_ms)
    began_ms = np.where(lag_began.is_older, UNKNOWN, began_ms)
    silent_since_ms = np.maximum(entry(window.commit_timestamp_ms, last), began_ms)
    is_stopped: Bools = (window.count > 0) & (silent_since_ms < now_ms - span_ms)
    return is_stopped


def _was_caught_up(window: CommitWindow, allowed_lag: int) -> Bools:
    return _any((window.lag != UNKNOWN) & (window.lag <= allowed_lag))


def _went_back(window: CommitWindow) -> Bools:
    # UNKNOWN behind the last commit is smaller than it, and no step back.
    before, after = window.committed_offset[:, :-1], window.committed_offset[:, 1:]
    return _any((after != UNKNOWN) & (after < before))


def _stands_still(window: CommitWindow) -> Bools:
    # One commit alone stands nowhere: there is nothing to compare it with.
    offsets = window.committed_offset
    return (window.count > 1) & ~_any((offsets != UNKNOWN) & (offsets != offsets[:, :1]))


def _lag_never_fell(window: CommitWindow) -> Bools:
    # UNKNOWN is the smallest integer, so the running maximum is the last known lag as long as none fell.
    highest: Int64s = np.maximum.accumulate(window.lag, axis=1)
    is_known = window.lag != UNKNOWN
    is_comparable: Bools = np.count_nonzero(is_known, axis=1) > 1
    return is_comparable & ~_any(is_known & (window.lag < highest))


def _any(entries: Bools) -> Bools:
    has_any: Bools = np.count_nonzero(entries, axis=1) > 0
    return has_any
