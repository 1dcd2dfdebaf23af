"""The cost model of a search: drain time of a member, its load, and its lag area, all of them finite.

A drain time beyond a horizon, or of a member that never drains, is replaced by the time that all work arrived by the
horizon takes. So such times stay comparable, and a search still balances an overload that it cannot avoid. The two
forms meet at the horizon h: lag / (capacity - rate) = h is the same equation as (lag + rate * h) / capacity = h.
`time.drain_s` gives the true times.
"""

from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Floats

_LEAST_HEADROOM = 0.1
"""A member with less headroom than this share of its capacity is late as soon as traffic rises."""
_CROWDED = 0.05
"""With less headroom than this share a member hardly counts as later still: what has to be drained goes before."""
_FULL = 0.4
"""What a member without any headroom counts more than a crowded one, in floors; above 0, so that less is better."""
_LEAST_SPARE = 1e-9
"""Share of the capacity; keeps divisions finite in branches that `np.where` then drops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """Costs of members by lag, arrival rate and capacity; the arrays broadcast against each other."""

    horizon_s: float
    """No drain time is extrapolated beyond this."""
    floor_s: float
    """Times up to this count as this: what is below it is no gain."""

    @property
    def most_without_lag_s(self) -> float:
        """Load of a member with neither lag nor headroom; every larger load is a drain time."""
        return self.floor_s * (_LEAST_HEADROOM / _CROWDED + _FULL)

    def finite_drain_s(self, lag: Floats, rate: Floats, capacity: Floats) -> Floats:
        """Seconds until the lag is drained; beyond the horizon, seconds of work at the horizon."""
        work = lag + rate * self.horizon_s
        # Members that never drain take the other branch; the divisor only has to be positive.
        spare = np.maximum(capacity - rate, capacity * _LEAST_SPARE)
        times: Floats = np.where(work > capacity * self.horizon_s, work / capacity, lag / spare)
        return times

    def load_s(self, lag: Floats, rate: Floats, capacity: Floats) -> Floats:
        """Load in seconds: `finite_drain_s`, or more for a member with little headroom.

        With a headroom of exactly a tenth the load is `floor_s`, with less it is above, up to 2.4 times without any. So
        members without lag that could not absorb any are relieved, too, but not at the price of minutes of lag.
        """
        return self.load_of_times_s(self.finite_drain_s(lag, rate, capacity), rate, capacity)

    def load_of_times_s(self, times: Floats, rate: Floats, capacity: Floats) -> Floats:
        """`load_s` of members whose `finite_drain_s` is known."""
        # Without a floor there is no time at which a member without lag would count as late.
        if self.floor_s == 0:
            return times
        headroom = np.maximum(1 - rate / capacity, 0.0)
        lacks = np.maximum(_CROWDED - headroom, 0.0) / _CROWDED
        crowding: Floats = _LEAST_HEADROOM / np.maximum(headroom, _CROWDED) + _FULL * lacks
        return np.maximum(times, self.floor_s * crowding)

    def lag_area(self, lag: Floats, rate: Floats, capacity: Floats) -> Floats:
        """Record-seconds: lag summed over time until it is drained, or until the horizon.

        Lag falls in a line, so the area is a triangle, or a trapezium where the horizon cuts it off.
        """
        # Both branches agree where lag = spare * h, so a search meets no jump at the horizon.
        h = self.horizon_s
        spare = capacity - rate
        drained = lag * lag / (2 * np.maximum(spare, capacity * _LEAST_SPARE))
        areas: Floats = np.where(lag > spare * h, lag * h - spare * h * h / 2, drained)
        return areas

    def drain_of_one_s(self, lag: float, rate: float, capacity: float) -> float:
        """`finite_drain_s` of one member: for a single one many times as fast as the arrays are."""
        work = lag + rate * self.horizon_s
        if work > capacity * self.horizon_s:
            return work / capacity
        return lag / max(capacity - rate, capacity * _LEAST_SPARE)

    def load_of_one_s(self, lag: float, rate: float, capacity: float) -> float:
        """`load_s` of one member."""
        time_s = self.drain_of_one_s(lag, rate, capacity)
        if self.floor_s == 0:
            return time_s
        headroom = max(1 - rate / capacity, 0.0)
        lacks = max(_CROWDED - headroom, 0.0) / _CROWDED
        return max(time_s, self.floor_s * (_LEAST_HEADROOM / max(headroom, _CROWDED) + _FULL * lacks))

    def lag_area_of_one(self, lag: float, rate: float, capacity: float) -> float:
        """`lag_area` of one member."""
        h, spare = self.horizon_s, capacity - rate
        if lag > spare * h:
            return lag * h - spare * h * h / 2
        return lag * lag / (2 * max(spare, capacity * _LEAST_SPARE))
