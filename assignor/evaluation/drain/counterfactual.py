"""What each move of a plan buys: how things would be without that one move."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from assignor.model.arrays import Bools, Floats, Int32s

Measure: TypeAlias = Callable[[Floats, Floats, Floats], Floats]
"""Of loads: lag, rate and capacity to one number each."""

_RANKED = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loads:
    """What the members hold."""

    lag: Floats
    rate: Floats
    capacity: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moved:
    """Partitions that changed hands: lag, arrival rate, old and new member of each."""

    lag: Floats
    rate: Floats
    giver: Int32s
    taker: Int32s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Undone:
    """The loads after all moves but one, for each move that could be left out."""

    giver_s: Floats
    """Time of the old member with the partition back."""
    taker_s: Floats
    """Time of the new member without it."""
    others_s: Floats
    """Largest time of all other members, 0 if there are none."""
    record_s: Floats
    """How much larger the lag area is; negative if it is smaller."""

    def slowest_s(self) -> Floats:
        """Largest time of all members."""
        slowest: Floats = np.maximum(np.maximum(self.giver_s, self.taker_s), self.others_s)
        return slowest


def undone(loads: Loads, moved: Moved, *, time_s: Measure, record_s: Measure) -> Undone:
    """The loads without each of the moves; all of them have been made.

    Args:
        loads: After all moves.
        moved: The moves.
        time_s: Of a load, in seconds.
        record_s: Lag area of a load, in record-seconds.
    """
    giver, taker = moved.giver, moved.taker
    mine, yours = loads.capacity[giver], loads.capacity[taker]
    with_it = loads.lag[giver] + moved.lag, loads.rate[giver] + moved.rate
    without = np.maximum(loads.lag[taker] - moved.lag, 0.0), np.maximum(loads.rate[taker] - moved.rate, 0.0)
    areas = record_s(loads.lag, loads.rate, loads.capacity)
    more = record_s(*with_it, mine) - areas[giver] + record_s(*without, yours) - areas[taker]
    times = time_s(loads.lag, loads.rate, loads.capacity)
    return Undone(
        giver_s=time_s(*with_it, mine),
        taker_s=time_s(*without, yours),
        others_s=_largest_of_others(times, giver, taker),
        record_s=more,
    )


def _largest_of_others(times: Floats, giver: Int32s, taker: Int32s) -> Floats:
    """The largest time of a member that is neither: one of the three largest."""
    largest = np.zeros(len(giver))
    for member in np.argsort(-times, kind="stable")[:_RANKED][::-1].tolist():
        other: Bools = (giver != member) & (taker != member)
        largest[other] = times[member]
    return largest
