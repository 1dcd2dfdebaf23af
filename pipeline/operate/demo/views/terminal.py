"""A terminal that shows only the output of the view."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

_OUT, _ERR = 1, 2


@contextmanager
def kept_clean(log: Path) -> Iterator[Console]:
    """A console on standard output, while all other output of this process is appended to `log`.

    Java, librdkafka and child processes write to the file descriptors themselves, so these are redirected instead of
    `sys.stdout`.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(_OUT), os.dup(_ERR)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), _OUT)
            os.dup2(file.fileno(), _ERR)
        with os.fdopen(os.dup(saved[0]), "w", buffering=1, encoding="utf-8") as terminal:
            yield Console(file=terminal, highlight=False, soft_wrap=not terminal.isatty())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for before, now in zip(saved, (_OUT, _ERR), strict=True):
            os.dup2(before, now)
            os.close(before)
