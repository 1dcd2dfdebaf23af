"""A member of a KIP-848 group in a process of its own: `python -m tests.support.groups.kip848_member '{"bootstrap": …}'`.

It ends when it is asked to (SIGTERM), after it has left its group. While the file "busy" is there it does not poll, as a
member that is in the middle of a record.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from confluent_kafka import Consumer


class Member:
    """The process, as the test holds it."""

    def __init__(
        self, bootstrap: str, group: str, subscription: list[str], busy: Path, **properties: Any
    ) -> None:
        """It has begun to join."""
        self._busy = busy
        given = {"bootstrap": bootstrap, "group": group, "subscription": subscription, "busy": str(busy)}
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.groups.kip848_member",
                json.dumps(given | {"properties": properties}),
            ]
        )

    def be_busy(self, *, busy: bool) -> None:
        """Poll no longer, or again."""
        if busy:
            self._busy.touch()
        else:
            self._busy.unlink(missing_ok=True)

    def leave(self) -> None:
        """Return when it has left and ended."""
        self.be_busy(busy=False)
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(30) == 0

    def kill(self) -> None:
        """End it without a word to the group."""
        self._process.kill()
        self._process.wait(30)


def main(given: dict[str, Any]) -> None:
    """Consume until SIGTERM."""
    ended = False

    def end(_number: int, _frame: FrameType | None) -> None:
        nonlocal ended
        ended = True

    signal.signal(signal.SIGTERM, end)
    consumer = Consumer(
        {
            "bootstrap.servers": given["bootstrap"],
            "group.id": given["group"],
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "log_level": 0,
            **given["properties"],
        }
    )
    consumer.subscribe(given["subscription"])
    while not ended:
        if Path(given["busy"]).exists():
            # Nothing is waited for: this is the time that a record takes.
            time.sleep(0.1)
        else:
            consumer.poll(0.1)
    consumer.close()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
