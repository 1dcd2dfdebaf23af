"""The clock that every process shares, as Kafka's records carry it."""

import time
from datetime import datetime, timezone


def now_ms() -> int:
    """The present time, ms since the epoch."""
    return time.time_ns() // 1_000_000


def duration(length_ms: float) -> str:
    """A length of time in the largest unit of which it has two at least.

    Example:
        >>> duration(90_000), duration(7_200_000)
        ('90.0 s', '2.0 h')
    """
    seconds = length_ms / 1000
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def at(time_ms: int) -> datetime:
    """That time in UTC.

    Args:
        time_ms: Since the epoch.

    Raises:
        OverflowError: A `datetime` does not reach so far; also `ValueError` or `OSError`, by platform.
    """
    return datetime.fromtimestamp(time_ms / 1000, tz=timezone.utc)
