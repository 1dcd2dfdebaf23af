"""The two clocks of the client adapters; the state machines they drive ask none."""

import time


def now_ms() -> int:
    """Time in ms since 1970."""
    return time.time_ns() // 1_000_000


def clock_s() -> float:
    """Seconds of a clock that only goes forward."""
    return time.monotonic()
