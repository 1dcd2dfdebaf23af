"""What a load costs: how late its member is, and how much lag lies around until it is drained.

Times beyond a horizon, and those of members that never get there, are replaced by the time the work that has
come in by the horizon takes. So they stay comparable, an overload that cannot be avoided is still levelled,
and where the two forms meet they are equal. `time.drain_s` gives the true times.
"""

from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Floats

_LEAST_HEADROOM = 0.1
"""A member with less than this share of its capacity to spare is late as soon as traffic rises."""
_LEAST_SPARE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Prices of loads; arrays of lag, arrival rate and capacity broadcast against each other."""

    horizon_s: float
    floor_s: float
    """A time up to this is as good as none."""

    def late_s(self, lag: Floats, rate: Floats, capacity: Floats) -> Floats:
        """Seconds until the load is drained; beyond the horizon, seconds of work at the horizon."""
        work = lag + rate * self.horizon_s
        spare = np.maximum(capacity - rate, capacity * _LEAST_SPARE)
        times: Floats = np.where(work > capacity * self.horizon_s, work / capacity, lag / spare)
        return times

    def pressure_s(self, lag: Floats, rate: Floats, capacity: Floats) -> Floats:
        """`late_s`, or more if arrivals fill the member: above `floor_s` with less than a tenth to spare."""
        times = self.late_s(lag, rate, capacity)
        if self.floor_s == 0:
            return times
        headroom = np.maximum(1 - rate / capacity, _LEAST_SPARE)
        fullness: Floats = np.minimum(self.floor_s * _LEAST_HEADROOM / headroom, self.horizon_s)
        return np.maximum(times, fullness)

    def record_s(self, lag: Floats, rate: Floats, capacity: Floats) -> Floats:
        """The lag area: lag summed over time until it is drained, or until the horizon."""
        h = self.horizon_s
        spare = capacity - rate
        drained = lag * lag / (2 * np.maximum(spare, capacity * _LEAST_SPARE))
        areas: Floats = np.where(lag > spare * h, lag * h - spare * h * h / 2, drained)
        return areas
