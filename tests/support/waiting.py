"""Waiting on a condition instead of sleeping."""

import time
from collections.abc import Callable

_LOOK_EVERY_S = 0.05


def wait_until(condition: Callable[[], object], *, what: str, within_s: float = 30.0) -> None:
    """Return as soon as the condition holds.

    Raises:
        AssertionError: It did not hold in time; the message says what was waited for.
    """
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within_s:.0f} s in vain: {what}")
        time.sleep(_LOOK_EVERY_S)
