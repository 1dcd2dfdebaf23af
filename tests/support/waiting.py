"""Waiting on a condition instead of sleeping."""

import time
from collections.abc import Callable

_LOOK_EVERY_S = 0.05
# A rebalance of real members takes a second, and half a minute on a machine that has other things to do.
_WITHIN_S = 120.0


def wait_until(
    condition: Callable[[], object], *, what: str, within_s: float = _WITHIN_S, every_s: float = _LOOK_EVERY_S
) -> None:
    """Return as soon as the condition, looked at so often, holds.

    Raises:
        AssertionError: It did not hold in time; the message says what was waited for.
    """
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within_s:.0f} s in vain: {what}")
        time.sleep(every_s)
