"""A driver as a host of its own runs it: with a configuration, a checkpoint, a log and a process group of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.job.job import write_config
from tests.support.waiting import wait_until

_STANDBY = Path(__file__).parents[2] / "fault" / "standby.py"
_WITHIN_S = 300.0


class HostDriver:
    """Started as a standby, which takes over at once where nobody owns the tables; a context manager."""

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        root: str,
        *,
        patience_s: float,
        step: str | None = None,
        variables: dict[str, str] | None = None,
    ) -> None:
        """Start it.

        Args:
            folder: For its files, made here.
            bootstrap: Of the broker.
            root: Of the tables.
            patience_s: How long it waits for the heartbeat of another driver.
            step: Behind which it freezes once; None for a driver that does not.
            variables: Of its environment, besides those of this process.
        """
        folder.mkdir()
        config, self._log = folder / "lagwise.toml", folder / "log"
        write_config(config, bootstrap, root, publishes=True, checkpoint=str(folder / "checkpoint"))
        command = [sys.executable, str(_STANDBY), str(config), str(patience_s)]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                command if step is None else [*command, step],
                stdout=log,
                stderr=log,
                env={**os.environ, **(variables or {})},
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """What it has logged."""
        return self._log.read_text(encoding="utf-8")

    @property
    def batches(self) -> int:
        """How many have ended."""
        return self.said.count(" batch batch_id=")

    @property
    def status(self) -> int | None:
        """Exit status; None while it lives."""
        return self._process.poll()

    @property
    def is_frozen(self) -> bool:
        """Whether it has stopped, as by SIGSTOP."""
        return Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def wait(self, condition: Callable[[], object], *, what: str, within_s: float = _WITHIN_S) -> None:
        """Return as soon as the condition holds; a driver that ends meanwhile fails the test with its last words."""

        def holds() -> bool:
            assert self.status is None, f"it ended while waiting for {what}: {self.said[-3000:]}"
            return bool(condition())

        wait_until(holds, what=what, within_s=within_s)

    def ended(self) -> int:
        """Exit status, as soon as there is one."""
        return self._process.wait(_WITHIN_S)

    def wake(self) -> None:
        """Let it and its JVM go on."""
        os.killpg(self._process.pid, signal.SIGCONT)

    def terminate(self) -> None:
        """Ask it to end between two batches."""
        self._process.terminate()

    def __enter__(self) -> "HostDriver":
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
