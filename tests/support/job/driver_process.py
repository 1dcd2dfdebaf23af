"""A driver in a process group of its own, which logs to a file."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

_WITHIN_S = 300.0


class DriverProcess:
    """From its start to its end, or to `kill`."""

    def __init__(self, command: Sequence[str], log: Path, **how: Any) -> None:
        """Start it.

        Args:
            command: Its command line.
            log: File of its output.
            how: For `Popen`.
        """
        self._log = log
        with log.open("w") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True, **how)

    @property
    def said(self) -> str:
        """What it has logged."""
        return self._log.read_text(encoding="utf-8")

    @property
    def pid(self) -> int:
        """Of the process that was started."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status; None while it runs."""
        return self._process.poll()

    @property
    def batches(self) -> int:
        """How many have ended."""
        return self.said.count(" batch batch_id=")

    def wait(self, condition: Callable[[], object], *, what: str, within_s: float = _WITHIN_S) -> None:
        """Return as soon as the condition holds; a driver that ends meanwhile fails the test with its last words."""

        def holds() -> bool:
            assert self.status is None, f"it ended while waiting for {what}: {self.said[-3000:]}"
            return bool(condition())

        wait_until(holds, what=what, within_s=within_s)

    def ended(self) -> int:
        """Exit status, as soon as there is one."""
        return self._process.wait(_WITHIN_S)

    def terminate(self) -> None:
        """Ask it to end between two batches."""
        self._process.terminate()

    def kill(self) -> None:
        """SIGKILL to all of it."""
        if self.status is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.ended()
