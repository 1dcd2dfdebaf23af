"""The clock that every process shares, as Kafka's records carry it."""

import time
from datetime import datetime, timezone


def now_ms() -> int:
    """The present time, ms since the epoch."""
    return time.time_ns() // 1_000_000


def at(time_ms: int) -> datetime:
    """That time in UTC.

    Args:
        time_ms: Since the epoch.

    Raises:
        OverflowError: A `datetime` does not reach so far; also `ValueError` or `OSError`, by platform.
    """
    return datetime.fromtimestamp(time_ms / 1000, tz=timezone.utc)
