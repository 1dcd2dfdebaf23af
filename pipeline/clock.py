"""The clock that every process shares, as Kafka's records carry it."""

import time


def now_ms() -> int:
    """The present time, ms since the epoch."""
    return time.time_ns() // 1_000_000
