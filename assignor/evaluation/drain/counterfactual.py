"""Gain of each move of an assignment: the counterfactual without that one move.

Taking out a move changes two members only, so the figures of N members and M moves take O(N log N + M) instead of
evaluating M assignments.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from assignor.model.arrays import Bools, Floats, Int32s

Measure: TypeAlias = Callable[[Floats, Floats, Floats], Floats]
"""From lag, rate and capacity of members to one number each."""

# Of three members one at least is neither of the two that a move concerns.
_RANKED = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemberLoads:
    """Lag, arrival rate and capacity of each member."""

    lag: Floats
    rate: Floats
    capacity: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MovedPartitions:
    """Lag, arrival rate, old and new member of each partition that moves."""

    lag: Floats
    rate: Floats
    from_member: Int32s
    to_member: Int32s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counterfactuals:
    """Figures after all moves but one, for each move that could be left out."""

    from_s: Floats
    """Drain time of the old member with the partition back."""
    to_s: Floats
    """Drain time of the new member without it."""
    others_s: Floats
    """Largest drain time of all other members, 0 if there are none."""
    lag_area: Floats
    """Record-seconds by which the lag area is larger; negative if it is smaller."""

    def slowest_s(self) -> Floats:
        """Largest drain time of all members."""
        slowest: Floats = np.maximum(np.maximum(self.from_s, self.to_s), self.others_s)
        return slowest


def counterfactuals(
    loads: MemberLoads, moved: MovedPartitions, *, drain_s: Measure, lag_area: Measure
) -> Counterfactuals:
    """The figures without each of the moves, one at a time.

    Args:
        loads: The members after all moves.
        moved: The moves.
        drain_s: Drain time of members, seconds.
        lag_area: Lag area of members, record-seconds.
    """
    from_member, to_member = moved.from_member, moved.to_member
    from_capacity, to_capacity = loads.capacity[from_member], loads.capacity[to_member]
    restored = loads.lag[from_member] + moved.lag, loads.rate[from_member] + moved.rate
    # Sums of floats do not cancel exactly; a tiny negative rest is no load.
    lag_left = np.maximum(loads.lag[to_member] - moved.lag, 0.0)
    without = lag_left, np.maximum(loads.rate[to_member] - moved.rate, 0.0)
    # Areas of members add up, so those of all other members cancel.
    areas = lag_area(loads.lag, loads.rate, loads.capacity)
    more = (
        lag_area(*restored, from_capacity)
        - areas[from_member]
        + lag_area(*without, to_capacity)
        - areas[to_member]
    )
    # A maximum does not cancel: the largest of the others has to be found.
    times = drain_s(loads.lag, loads.rate, loads.capacity)
    return Counterfactuals(
        from_s=drain_s(*restored, from_capacity),
        to_s=drain_s(*without, to_capacity),
        others_s=_largest_of_others(times, from_member, to_member),
        lag_area=more,
    )


def _largest_of_others(times: Floats, from_member: Int32s, to_member: Int32s) -> Floats:
    """The largest time of a member other than these two: one of the three largest of all."""
    # From the third largest to the largest, so that the largest that qualifies is written last.
    largest = np.zeros(len(from_member))
    for member in np.argsort(-times, kind="stable")[:_RANKED][::-1].tolist():
        other: Bools = (from_member != member) & (to_member != member)
        largest[other] = times[member]
    return largest
