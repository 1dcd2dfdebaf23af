"""A driver as a host of its own runs it: with a configuration, a checkpoint, a log and a process group of its own."""

import os
import signal
import sys
from pathlib import Path

from tests.support.job.driver_process import DriverProcess
from tests.support.job.job import write_config

_STANDBY = Path(__file__).parents[2] / "fault" / "standby.py"


class HostDriver(DriverProcess):
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
        config = folder / "lagwise.toml"
        write_config(config, bootstrap, root, publishes=True, checkpoint=str(folder / "checkpoint"))
        command = [sys.executable, str(_STANDBY), str(config), str(patience_s)]
        super().__init__(
            command if step is None else [*command, step],
            folder / "log",
            env={**os.environ, **(variables or {})},
        )

    @property
    def is_frozen(self) -> bool:
        """Whether it has stopped, as by SIGSTOP."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def wake(self) -> None:
        """Let it and its JVM go on."""
        os.killpg(self.pid, signal.SIGCONT)

    def __enter__(self) -> "HostDriver":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
