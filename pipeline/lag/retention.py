"""Time until Kafka deletes the first record that a group has not read.

Kafka deletes a segment when its newest record is older than `retention.ms`: never before the time counted here,
and often later. A record counts as old as its arrival, at the earliest time that the samples allow; if producers write
older timestamps, Kafka deletes it sooner.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.lag.age import LagAge


def kept_seconds(topics: pa.Array, retention_ms: Mapping[str, int]) -> Floats:
    """Return each topic's retention in seconds; nan if it is unknown, or does not depend on time alone."""
    encoded = topics.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    by_code = np.array([retention_ms.get(name, np.nan) for name in names], np.float64) / 1000
    kept: Floats = by_code[encoded.indices.to_numpy()]
    return kept


def seconds_left(age: LagAge, kept_s: Floats, *, lag: Int64s, is_expired: Bools) -> Floats:
    """Return the seconds until the first unread record may be deleted; nan if unknown, or if all are read.

    0 if records were already deleted unread, even if the topic's retention is unknown.

    Args:
        age: Age of the next record to read. A record older than every sample gives no result, nor does one that came
            while nobody asked and may be older than the topic's retention, unless the lower bound exceeds it too.
        kept_s: `kept_seconds`.
        lag: Records, or UNKNOWN.
        is_expired: Records were deleted unread.
    """
    left = kept_s - age.most_seconds
    left = np.where(age.is_lower_bound & (left <= 0), np.nan, np.maximum(left, 0.0))
    left = np.where(age.is_lower_bound & (age.seconds >= kept_s), 0.0, left)
    left = np.where(lag > 0, left, np.nan)
    return np.where((lag > 0) & is_expired, 0.0, left)
