"""Trend of a partition's lag (growing, falling or steady), compared with its lag some minutes ago.

The present lag is compared with one earlier lag, the reference, which is replaced when it is old. A difference counts
if it exceeds the normal variation between two commits: `TRAFFIC_S` seconds of the partition's traffic, `TOLERANCE` of
the reference, the lag that counts as caught up, and one record.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from assignor.model.arrays import Bools, Floats, Int8s, Int64s
from pipeline.lag.lag import UNKNOWN

TOLERANCE: Final = 0.02
TRAFFIC_S: Final = 10.0
"""Twice Kafka's default commit interval: the lag of a consumer that keeps up rises and falls by this much."""

NO_TREND: Final = -1
GROWING, STEADY, FALLING = range(3)
TREND_NAMES: Final = ("growing", "steady", "falling")
"""Words by code; `NO_TREND` has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPace:
    """Age limits of the reference."""

    least_ms: int
    """Minimum age; before that, the previous trend stays."""
    most_ms: int
    """Age at which it is replaced; until then, a growing or falling lag turns steady only near zero."""

    @property
    def traffic_s(self) -> float:
        """`TRAFFIC_S`, or less where the reference may be younger than that: nothing would ever be seen to grow."""
        return min(TRAFFIC_S, self.least_ms / 2000)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trend:
    """Trends of P partitions."""

    code: Int8s
    """``[P]``."""
    lag: Int64s
    """``[P]``, the reference in records, UNKNOWN if there is none."""
    at_ms: Int64s
    """``[P]``, its time, UNKNOWN if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LagNow:
    """Measurements of P partitions."""

    lag: Int64s
    """``[P]``, records or UNKNOWN."""
    traffic: Floats
    """``[P]``, records/s, the faster of arrivals and commits; nan where unknown."""
    is_comparable: Bools
    """``[P]``, with the lag of before: same topic, and all that was committed then had been read."""
    is_fresh: Bools
    """``[P]``, the log end was answered since the last batch."""


def trend_of(before: Trend, now: LagNow, *, now_ms: int, pace: TrendPace, allowed_lag: int) -> Trend:
    """Return the trends after a batch.

    There is no trend, and the reference is dropped, if the lag is unknown or not comparable. There is no trend, but the
    reference stays, if the log end is an old one.

    Args:
        before: Result of the last batch.
        now: What is measured.
        now_ms: Time of the batch, ms since the epoch.
        pace: Age limits of the reference.
        allowed_lag: Records of lag that count as caught up.
    """
    is_known = (now.lag != UNKNOWN) & now.is_comparable
    has_reference = is_known & (before.at_ms != UNKNOWN)
    age_ms = np.where(has_reference, now_ms - before.at_ms, 0)
    # A clock gone back, and a reference of before a long silence, say nothing of the last minutes.
    is_lost = is_known & ((age_ms < 0) | (age_ms >= 2 * pace.most_ms))
    reference = np.where(has_reference, before.lag, 0)
    grown = np.where(has_reference, now.lag, 0) - reference
    tolerated = np.maximum.reduce(
        [
            TOLERANCE * reference,
            pace.traffic_s * np.nan_to_num(now.traffic),
            np.full(len(grown), max(allowed_lag, 1)),
        ]
    )
    judged = np.where(grown > tolerated, GROWING, np.where(grown < -tolerated, FALLING, STEADY))
    # What grows slowly has not grown much since a young reference: until that is old the word stands.
    is_small = np.maximum(now.lag, reference) <= tolerated
    is_told = (judged != STEADY) | (before.code < 0) | is_small | (age_ms >= pace.most_ms)
    code = np.where((age_ms >= pace.least_ms) & is_told, judged, before.code)
    code = np.where(has_reference & now.is_fresh & ~is_lost, code, NO_TREND)
    is_taken = is_known & now.is_fresh & (~has_reference | is_lost | (age_ms >= pace.most_ms))
    return Trend(
        code=code.astype(np.int8),
        lag=_reference(is_taken, has_reference & ~is_lost, now.lag, before.lag),
        at_ms=_reference(is_taken, has_reference & ~is_lost, np.full(len(code), now_ms), before.at_ms),
    )


def _reference(is_taken: Bools, is_kept: Bools, new: Int64s, old: Int64s) -> Int64s:
    return np.where(is_taken, new, np.where(is_kept, old, UNKNOWN))
