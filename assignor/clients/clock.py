"""The two clocks of the client adapters; the state machines they drive ask none."""

import time


def now_ms() -> int:
    """Time in ms since 1970."""
    return time.time_ns() // 1_000_000


clock_s = time.monotonic
"""Seconds of a clock that only goes forward; by its own name, as a consumer asks it before each record."""
