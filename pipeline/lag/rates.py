"""Rates in records/s from offsets observed at irregular times: exponentially weighted means.

Unknown rates are nan, unknown integers ``lag.UNKNOWN``. A rate that is known is finite and >= 0.
"""

import numpy as np

from assignor.model.arrays import Floats, Int64s
from pipeline.lag.lag import UNKNOWN


def arrival_rate(previous: Floats, delta_records: Int64s, delta_ms: Int64s, half_life_ms: int) -> Floats:
    """Return the rate at which the log end grows, in records/s; nan if unknown.

    A log end that fell (topic truncated or recreated) makes the rate unknown again: the new log need
    not have the traffic of the old one. For the rest see ``drain_rate``.
    """
    fell = (delta_records < 0) & (delta_records != UNKNOWN)
    return np.where(fell, np.nan, _mean(previous, delta_records, delta_ms, half_life_ms))


def drain_rate(previous: Floats, delta_records: Int64s, delta_ms: Int64s, half_life_ms: int) -> Floats:
    """Return the rate at which the committed offset advances, in records/s; nan if unknown.

    A commit that went back (offsets reset on purpose, work done again) shows no speed, and leaves
    the rate unchanged.

    Args:
        previous: ``[P]``, this function's last answer; nan before the first.
        delta_records: ``[P]``, growth since the last observation; UNKNOWN if there is no earlier one.
        delta_ms: ``[P]``, time since the last observation; <= 0 or UNKNOWN leaves the rate as it was.
        half_life_ms: > 0; an observation this old has half the weight it had.

    Returns:
        The raw rate where no rate was known, else the mean that moves towards the raw rate by
        ``1 - 2^(-delta_ms / half_life_ms)``, so that two short steps weigh as one long one. It is 0 only
        as long as no advance was ever seen: a rate that halves for ever stays above.
    """
    # Halved for years a rate would underflow to 0, which means that no advance was ever seen.
    mean = _mean(previous, delta_records, delta_ms, half_life_ms)
    return np.where(previous > 0, np.maximum(mean, np.finfo(np.float64).tiny), mean)


def _mean(previous: Floats, delta_records: Int64s, delta_ms: Int64s, half_life_ms: int) -> Floats:
    # UNKNOWN is below 0, so the two comparisons leave it out as well.
    usable = (delta_records >= 0) & (delta_ms > 0)
    elapsed_ms = np.where(usable, delta_ms, 1)
    raw = delta_records * 1000.0 / elapsed_ms
    half_lives = elapsed_ms / half_life_ms
    # Two products of values >= 0 cannot turn negative; expm1 keeps a weight much smaller than 1 exact.
    mean = previous * np.exp2(-half_lives) - raw * np.expm1(-np.log(2.0) * half_lives)
    return np.where(usable, np.where(np.isnan(previous), raw, mean), previous)
