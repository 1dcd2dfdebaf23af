"""What every process of the demo shares: it ends when the demo ends, in whatever way."""

import sys
from threading import Event, Thread


def stop_with_parent() -> Event:
    """An event that is set when the other end of standard input is closed, which a dead parent does too."""
    stop = Event()

    def wait() -> None:
        sys.stdin.buffer.read()
        stop.set()

    Thread(target=wait, daemon=True).start()
    return stop
