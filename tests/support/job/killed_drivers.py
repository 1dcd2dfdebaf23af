"""Drivers of `tests/fault/driver.py` that are killed one after the other, and a run that nobody disturbs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

_DRIVER = Path(__file__).parents[2] / "fault" / "driver.py"


class KilledDrivers:
    """What the tables say in the end is compared with a run over the same topic that nobody disturbed.

    Attributes:
        bootstrap: Of the broker.
        root: Tables of the drivers that are killed.
        calm: Tables of the last run, in a folder.
        statuses: Of the drivers that were killed; None for one that did not end.
        last_statuses: Of the last driver on the same tables, and of the run that nobody disturbed.
    """

    def __init__(
        self, bootstrap: str, root: str, calm: Path, *, within_s: float, checkpoint: Path | None = None
    ) -> None:
        """Start none.

        Args:
            bootstrap: Of the broker.
            root: Of the tables.
            calm: Folder of the tables of the run that nobody disturbs.
            within_s: Time of each driver.
            checkpoint: Folder of the checkpoint, for tables that are not in a folder.
        """
        self.bootstrap, self.root, self.calm = bootstrap, root, str(calm)
        self.statuses: list[int | None] = []
        self._within_s = within_s
        self._checkpoint = [] if checkpoint is None else [str(checkpoint)]
        self.last_statuses: tuple[int | None, int | None] = None, None

    def start(self, step: str, when: str) -> "subprocess.Popen[bytes]":
        """One that is killed behind this step."""
        return self._start(self.root, step, when, *self._checkpoint)

    def ended(self, driver: "subprocess.Popen[bytes]") -> int | None:
        """Its exit status; None for one that did not end in time, and is killed."""
        try:
            return driver.wait(self._within_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)

    def run_to_the_end(self) -> None:
        """A driver that is not killed, then a run that nobody disturbs."""
        last = self.ended(self.start("none", "never"))
        self.last_statuses = last, self.ended(self._start(self.calm, "none", "never"))

    def _start(self, root: str, *more: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, str(_DRIVER), root, self.bootstrap, *more]
        return subprocess.Popen(command, start_new_session=True)
