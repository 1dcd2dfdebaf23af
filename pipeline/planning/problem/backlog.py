"""Lag that counts for planning: what a group was behind at its commit, and what its commit interval does not explain.

Between two commits lag grows by what arrives, however fast the group reads. Only what has come since a commit was due
is evidence that a member has fallen behind, or that it stands still.
"""

import numpy as np

from assignor.model.arrays import Floats, Int64s
from pipeline.lag.commits.at_commit import clock_error_records
from pipeline.lag.lag import UNKNOWN
from pipeline.planning.facts import PartitionFacts

_BEARABLE = 1.5
"""A commit that comes later than usual by up to this factor is not late."""
_NO_HABIT_S = 300.0
"""How long a group may go without a commit while its habit is not known: Kafka itself takes a consumer that has not
polled for five minutes for dead (`max.poll.interval.ms`)."""


def due_s(partitions: PartitionFacts) -> Floats:
    """P entries: seconds after a commit until the next one is late."""
    return np.where(
        np.isnan(partitions.commit_interval_s), _NO_HABIT_S, _BEARABLE * partitions.commit_interval_s
    )


def waited_s(partitions: PartitionFacts) -> Floats:
    """P entries: seconds since the newest commit in which there was something to read; nan without a commit."""
    # A group that was caught up commits nothing until the next record arrives.
    return np.fmin(partitions.commit_age_s, partitions.lag_age_s)


def excused_s(partitions: PartitionFacts) -> Floats:
    """P entries: seconds of that time which the habit of committing explains; 0 without a commit."""
    return np.minimum(np.fmax(waited_s(partitions), 0.0), due_s(partitions))


def backlog(partitions: PartitionFacts, lag: Int64s) -> Int64s:
    """P entries: records that the group is behind beyond what lies between two of its commits.

    Lag at the newest commit, and of what has arrived since the share that came after the next commit was due. Where the
    lag at the commit is not known, the lag less what arrives in the time that the habit explains. None where clocks may
    make that much of nothing.

    Args:
        partitions: With the log offsets and commits.
        lag: P entries, `lag.assignor_lag` of the same partitions, records.
    """
    waited, excused = waited_s(partitions), excused_s(partitions)
    late = np.divide(waited - excused, waited, out=np.zeros(len(lag)), where=waited > 0)
    at_commit = np.minimum(partitions.lag_at_commit, lag)
    measured = at_commit + (late * (lag - at_commit)).astype(np.int64)
    arrived = (np.fmax(partitions.arrival_rate, 0.0) * excused).astype(np.int64)
    estimated = np.maximum(lag - arrived, 0)
    is_committed = partitions.committed != UNKNOWN
    known = np.where(partitions.lag_at_commit != UNKNOWN, measured, estimated)
    known = np.where(known <= clock_error_records(partitions.arrival_rate), 0, known)
    return np.where(is_committed, known, lag)
