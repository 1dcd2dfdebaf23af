"""Ctrl-C and SIGTERM: the first signal ends the demo in an orderly way, the second at once."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_EXIT_STATUS = 130
_LOOK_EVERY_S = 0.2


@contextmanager
def ended_by_signals(tidy: Callable[[], object]) -> Iterator[Event]:
    """An event that the first signal sets. A second signal calls `tidy` and ends this process at once.

    Nothing keeps running: consumers, Spark and the broker's watchdog end when their stdin closes.
    """
    asked = Event()

    def on_signal(_number: int, _frame: Any) -> None:
        if asked.is_set():
            tidy()
            os._exit(_EXIT_STATUS)
        asked.set()

    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def is_done(work: Future[Any], asked: Event) -> bool:
    """Wait until the work is done or a signal has come; return whether it is done.

    Raises:
        Exception: The error of the work.
    """
    while not work.done() and not asked.wait(_LOOK_EVERY_S):
        pass
    if not work.done():
        return False
    work.result()
    return True
