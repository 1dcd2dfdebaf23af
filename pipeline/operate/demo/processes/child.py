"""Common part of the demo's processes: they end with the demo, however it ends."""

import sys
from threading import Event, Thread


def stop_with_parent() -> Event:
    """An event that is set when the parent closes standard input or ends."""
    stop = Event()

    def wait() -> None:
        sys.stdin.buffer.read()
        stop.set()

    Thread(target=wait, daemon=True).start()
    return stop
