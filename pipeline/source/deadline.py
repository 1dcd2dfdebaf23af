"""Source: deadlines of what may hang where no exception comes: a client, a mount, a plan.

The process is ended when one has passed, by a thread that needs no interpreter: the client may hold its lock. Spark
then tries the task again, or ends the query, which the driver starts again.
"""

import faulthandler
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

CLIENT_S = 60.0
"""What a client may need in addition to the brokers' time, on a busy machine."""
TABLES_S = 600.0
"""What a task may need for its tables; it usually takes seconds."""


@contextmanager
def within(others_s: float) -> Iterator[None]:
    """End this process if the body takes a minute longer than brokers or tables may."""
    faulthandler.dump_traceback_later(others_s + CLIENT_S, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def each_within(others_s: float, pieces: Iterator[T]) -> Iterator[T]:
    """The pieces; `within` holds for each of them alone, and not for whoever takes them."""
    while True:
        with within(others_s):
            piece = next(pieces, None)
        if piece is None:
            return
        yield piece
