"""Limits each warning to one a minute, so that a client that can cause it at will cannot fill the disk."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_EVERY_S = 60.0
_MOST_KINDS = 1_000


class Seldom(logging.Filter):
    """Passes each warning or error once a minute; the next one carries the number held back."""

    def __init__(self, *, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now_s = now_s
        self._kinds: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the line."""
        if record.levelno < logging.WARNING:
            return True
        kind = record.name, str(record.msg)
        since_s, held_back = self._kinds.get(kind, (-_EVERY_S, 0))
        now_s = self._now_s()
        if now_s - since_s < _EVERY_S:
            self._kinds[kind] = since_s, held_back + 1
            return False
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        self._kinds[kind] = now_s, 0
        if held_back:
            record.held_back = held_back
        return True


@contextmanager
def seldom_warnings() -> Iterator[None]:
    """Let each warning of this process be logged once a minute."""
    handlers, seldom = logging.getLogger().handlers, Seldom()
    for handler in handlers:
        handler.addFilter(seldom)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(seldom)
