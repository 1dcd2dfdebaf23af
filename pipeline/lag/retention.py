"""How long the records that a group has not read are kept: until Kafka deletes the first of them.

Kafka deletes a segment when its newest record is older than `retention.ms`: not before the time that is counted here,
and often later. A record is taken to be as old as its arrival; where producers write older timestamps, it goes sooner.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from assignor.model.arrays import Floats, Int64s
from pipeline.lag.age import LagAge


def kept_seconds(topics: pa.Array, retention_ms: Mapping[str, int]) -> Floats:
    """How long each topic keeps its records, nan where that is not known, or not a matter of time alone."""
    encoded = topics.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    by_code = np.array([retention_ms.get(name, np.nan) for name in names], np.float64) / 1000
    kept: Floats = by_code[encoded.indices.to_numpy()]
    return kept


def seconds_left(age: LagAge, kept_s: Floats, *, lag: Int64s, committed: Int64s, log_start: Int64s) -> Floats:
    """Seconds until the first unread record may be deleted; >= 0, nan where unknown and where nothing is unread.

    0 where records were deleted unread already, whatever is known of the topic.

    Args:
        age: Of the next record to be read. One that is at least so old may be older: nothing follows from it, unless
            even that is more than the topic keeps.
        kept_s: `kept_seconds`.
        lag: Records, or UNKNOWN.
        committed: Committed offset, or UNKNOWN.
        log_start: First offset still in the log, or UNKNOWN.
    """
    left = np.maximum(kept_s - age.seconds, 0.0)
    left = np.where((lag > 0) & ~(age.is_lower_bound & (left > 0)), left, np.nan)
    # An unknown commit or log start is the smallest integer, and the lag is unknown then, or the start no floor.
    return np.where((lag > 0) & (committed < log_start), 0.0, left)
