"""Records that a lagging member reads from each partition, commit by commit: part of a group's state."""

import math
from dataclasses import dataclass

_MARK = 3
"""Entries of a mark."""


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
