"""What a member that is behind reads of each of its partitions, commit by commit: part of the memory of a group."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Readings of one member, the newest last, since it was given a partition last."""

    of: tuple[str, ...]
    """Partitions (`state.partition_key`) that it held at the first reading; it has been given no other since."""
    rates: tuple[tuple[float, ...], ...] = ()
    """Records/s of each, a row for each reading; 0 for those that it no longer holds."""
    behind: tuple[tuple[int, ...], ...] = ()
    """1 for each that it was behind in all the time, else 0; rows like `rates`."""
    marks: tuple[tuple[int, int, int], ...] = ()
    """Offset, time and lag of the newest commit of each partition that it holds; empty where the next reading cannot
    continue here."""
    marks_of: tuple[str, ...] = ()
    """The partitions of `marks`."""
