"""Source: deadlines for work that may hang without an exception: a client, a mount, a plan.

When a deadline passes, a thread that does not need the interpreter ends the process: the client may hold the
interpreter's lock. Spark then retries the task, or ends the query, which the driver restarts.
"""

import faulthandler
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

CLIENT_S = 60.0
"""Time that a client may need in addition to the brokers' time, on a busy machine."""
TABLES_S = 600.0
"""Time that a task may need for its tables; it usually takes seconds."""


@contextmanager
def within(others_s: float) -> Iterator[None]:
    """End this process if the body takes a minute longer than brokers or tables may."""
    faulthandler.dump_traceback_later(others_s + CLIENT_S, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def each_within(others_s: float, pieces: Iterator[T]) -> Iterator[T]:
    """Yield the pieces under a deadline that covers producing each piece, not consuming it."""
    while True:
        with within(others_s):
            piece = next(pieces, None)
        if piece is None:
            return
        yield piece
