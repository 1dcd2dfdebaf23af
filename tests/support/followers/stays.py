"""Who read a partition from when to when, and whether two did at one time."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

PlaceT = TypeVar("PlaceT", int, tuple[str, int])

_CLOCK_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay(Generic[PlaceT]):
    """A partition read by one member, from gained to given up, by one clock."""

    place: PlaceT
    who: str
    start: float
    end: float
    generation: int = -1
    """In which it began, where that is known."""


def overlapping(stays: Iterable[Stay[PlaceT]]) -> list[tuple[Stay[PlaceT], Stay[PlaceT]]]:
    """All pairs of stays of two members with one partition at one time, the earlier one first."""
    by_place = defaultdict[PlaceT, list[Stay[PlaceT]]](list)
    for stay in sorted(stays, key=lambda stay: stay.start):
        by_place[stay.place].append(stay)
    found = []
    for ordered in by_place.values():
        still: list[Stay[PlaceT]] = []
        for stay in ordered:
            still = [one for one in still if stay.start < one.end - _CLOCK_S]
            found += [(one, stay) for one in still if one.who != stay.who]
            still.append(stay)
    return found
