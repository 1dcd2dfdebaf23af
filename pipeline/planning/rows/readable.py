"""Plan: what a group could have read, where a transaction is open (`lag.readable`): the rest is no evidence."""

from dataclasses import replace

import numpy as np

from assignor.model.arrays import Int64s
from pipeline.lag.lag import lag
from pipeline.lag.readable import readable_end
from pipeline.planning.facts import PartitionFacts


def readable(partitions: PartitionFacts, offset: Int64s) -> PartitionFacts:
    """The partitions as if their logs ended where the group has been able to read.

    Args:
        partitions: By log ends.
        offset: P entries, `lag.readable.readable_offset`.
    """
    end = readable_end(offset, partitions.committed, partitions.log_end)
    is_held = end < partitions.log_end
    if not is_held.any():
        return partitions
    at_end = is_held & (lag(partitions.committed, partitions.log_start, end) == 0)
    return replace(partitions, log_end=end, lag_age_s=np.where(at_end, 0.0, partitions.lag_age_s))
