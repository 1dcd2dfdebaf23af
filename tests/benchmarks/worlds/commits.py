"""When a member commits: by time, at irregular times, or every so many records.

A commit takes in all partitions that the member reads at that moment, those that have not advanced too, as Java's
consumer does. Times are seconds since the start of the run and may lie before it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf
from typing import Protocol

import numpy as np

IRREGULAR_S = (5.0, 60.0)
"""Shortest and longest gap between irregular commits."""
BEFORE_S = 1800.0
"""How long before the start of the run irregular commits begin."""


class Rhythm(Protocol):
    """The commits of one member."""

    def newest_s(self, until_s: float, *, read: float, rate: float) -> float:
        """Time of the newest commit at `until_s`; -inf when there is none.

        It holds for as long back as the member has read at this rate.

        Args:
            until_s: The moment that is asked about.
            read: Records that the member has read since the start, at that moment; < 0 before the start.
            rate: Records/s that it reads.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """A commit every `interval_s` seconds, one of them at `phase_s`."""

    interval_s: float
    phase_s: float

    def newest_s(self, until_s: float, *, read: float, rate: float) -> float:  # noqa: ARG002 - time alone counts
        """See `Rhythm`."""
        return floor((until_s - self.phase_s) / self.interval_s) * self.interval_s + self.phase_s


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Commits at given times."""

    times_s: Sequence[float]
    """Rising."""

    def newest_s(self, until_s: float, *, read: float, rate: float) -> float:  # noqa: ARG002 - time alone counts
        """See `Rhythm`."""
        reached = bisect_right(self.times_s, until_s)
        return self.times_s[reached - 1] if reached else -inf


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCount:
    """A commit whenever the member has read another `records` records; `phase` of them were read at the start."""

    records: float
    phase: float

    def newest_s(self, until_s: float, *, read: float, rate: float) -> float:
        """See `Rhythm`."""
        return until_s - (read + self.phase) % self.records / rate if rate > 0 else -inf


def every_5_s(members: int) -> tuple[Rhythm, ...]:
    """What a member does unless a world says otherwise; the members are spread over the interval."""
    return tuple(Every(interval_s=5.0, phase_s=-11.1 * slot % 5.0) for slot in range(members))


def every(rng: np.random.Generator, members: int, *, interval_s: float) -> tuple[Rhythm, ...]:
    """The same interval for all, each with a phase of its own."""
    return tuple(
        Every(interval_s=interval_s, phase_s=float(rng.uniform(0, interval_s))) for _ in range(members)
    )


def by_count(rng: np.random.Generator, members: int, *, records: float) -> tuple[Rhythm, ...]:
    """The same count for all, each with a phase of its own."""
    return tuple(ByCount(records=records, phase=float(rng.uniform(0, records))) for _ in range(members))


def irregular(rng: np.random.Generator, members: int, *, until_s: float) -> tuple[Rhythm, ...]:
    """Gaps drawn evenly from `IRREGULAR_S`."""
    count = int((until_s + BEFORE_S) / IRREGULAR_S[0]) + 1
    return tuple(
        At(times_s=(np.cumsum(rng.uniform(*IRREGULAR_S, count)) - BEFORE_S).tolist()) for _ in range(members)
    )
