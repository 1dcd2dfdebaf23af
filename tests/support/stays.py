"""Who read a partition from when to when, and whether two did at one time."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
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
    """Pairs of stays of two members with one partition at one time."""
    ordered = sorted(stays, key=lambda stay: (stay.place, stay.start))
    return [
        (one, two)
        for one, two in pairwise(ordered)
        if one.place == two.place and one.who != two.who and two.start < one.end - _CLOCK_S
    ]
