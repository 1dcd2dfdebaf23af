"""The clock that every process shares, as Kafka's records carry it."""

import time
from datetime import datetime, timezone


def now_ms() -> int:
    """The present time, ms since the epoch."""
    return time.time_ns() // 1_000_000


def duration(length_ms: float) -> str:
    """A length of time in the largest unit of which it has two at least, so that none but 0 looks like 0.

    Example:
        >>> duration(90_000), duration(7_200_000), duration(5)
        ('90.0 s', '2.0 h', '5 ms')
    """
    for size_ms, unit in ((3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if length_ms >= 2 * size_ms:
            return f"{length_ms / size_ms:.1f} {unit}"
    return f"{length_ms:.0f} ms"


def at(time_ms: int) -> datetime:
    """That time in UTC.

    Args:
        time_ms: Since the epoch.

    Raises:
        OverflowError: A `datetime` does not reach so far; also `ValueError` or `OSError`, by platform.
    """
    return datetime.fromtimestamp(time_ms / 1000, tz=timezone.utc)
