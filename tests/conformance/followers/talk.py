"""What a process under trial is told, and the lines that it prints."""

import os
import sys
import threading
from collections.abc import Collection

ENVIRONMENT = {
    name.removeprefix("LAGWISE_").lower(): value
    for name, value in os.environ.items()
    if name.startswith("LAGWISE_")
}
NAME = ENVIRONMENT["member"]
SESSION_MS = int(ENVIRONMENT["session_timeout_ms"])
COMMIT_EVERY_S = 0.3
told_to_stop = threading.Event()


def say(*words: object) -> None:
    """Print a line, with one write: other members' lines go to the same file."""
    os.write(sys.stdout.fileno(), f"{NAME} {' '.join(map(str, words))}\n".encode())


def listed(places: Collection[int]) -> str:
    """Partition numbers as the lines have them."""
    return ",".join(map(str, sorted(places))) or "-"


def _listen() -> None:
    for line in sys.stdin:
        if line.strip() == "stop":
            break
    told_to_stop.set()


threading.Thread(target=_listen, daemon=True).start()
