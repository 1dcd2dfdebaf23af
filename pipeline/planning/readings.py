"""Observed speeds of a member, and its reading rates by partition while it is behind: part of a group's state."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

_MARK = 3
"""Entries of a mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """Figures of a member while it held the same partitions."""

    held: Mapping[str, str]
    """Topic -> ranges of partition numbers."""
    speeds: tuple[float, ...]
    """The newest speeds, records/s, the last one last."""
    at_ms: int
    """When the last one was shown."""
    held_ms: tuple[int, ...] = ()
    """For how long it had held them at each speed; unknown for some where an older version has written the state."""

    def warm(self, cold_ms: int) -> "Spell | None":
        """Return the spell with the speeds that it showed after it had held them for so long; None if there are none.

        Speeds of unknown time count.
        """
        if len(self.held_ms) != len(self.speeds):
            return self
        kept = [n for n, held_ms in enumerate(self.held_ms) if held_ms >= cold_ms]
        if not kept:
            return None
        speeds = tuple(self.speeds[n] for n in kept)
        return replace(self, speeds=speeds, held_ms=tuple(self.held_ms[n] for n in kept))

    @property
    def speed(self) -> float:
        """The middle one; of two the larger, for what is too low does harm."""
        return sorted(self.speeds)[len(self.speeds) // 2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Readings of one member, the newest last, since it was given a partition last."""

    member_id: str
    """Id of the member that read them."""
    of: tuple[str, ...]
    """Partitions (`state.partition_key`) that it held at the first reading; it has been given no other since."""
    rates: tuple[tuple[float, ...], ...] = ()
    """Records/s of each, a row for each reading; 0 for those that it no longer holds."""
    behind: tuple[tuple[int, ...], ...] = ()
    """1 for each that it was behind in all the time, else 0; rows like `rates`."""
    marks: tuple[tuple[int, int, int], ...] = ()
    """Offset, time and lag of the newest commit of each partition that it holds."""
    marks_of: tuple[str, ...] = ()
    """The partitions of `marks`."""

    @property
    def is_sound(self) -> bool:
        """True if rows and columns match their descriptions; the state drops other readings."""
        places = len(self.of)
        return (
            len(self.rates) == len(self.behind)
            and len(self.marks) == len(self.marks_of)
            and set(self.marks_of) <= set(self.of)
            and all(len(row) == places and all(_is_rate(rate) for rate in row) for row in self.rates)
            and all(len(row) == places and set(row) <= {0, 1} for row in self.behind)
            and all(len(row) == _MARK and all(isinstance(one, int) for one in row) for row in self.marks)
        )


def _is_rate(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0
