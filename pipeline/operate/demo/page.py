"""The page of the demo: a process next to the driver, like `lagwise serve`."""

import subprocess
from concurrent.futures import Future
from pathlib import Path
from typing import final

from pipeline.child_python import module_command
from pipeline.errors import MissingDependencyError
from pipeline.operate.background import in_background
from pipeline.operate.demo.processes.launcher import end
from pipeline.operate.extras import lacking


@final
class Page:
    """A process that serves the tables of the demo; close it after use."""

    def __init__(self, config: Path) -> None:
        """Start it.

        Raises:
            MissingDependencyError: Packages are missing.
        """
        why = lacking("serve")
        if why is not None:
            raise MissingDependencyError(why)
        self._process = subprocess.Popen(
            [*module_command("pipeline.operate.demo.processes.page"), str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._address: Future[str] = in_background(self._read)
        self._is_told = False

    def news(self) -> str | None:
        """Its address, once, as soon as it answers, or a remark that it ended before that."""
        if self._is_told or not self._address.done():
            return None
        self._is_told = True
        return self._address.result() or "none; see the log for the cause"

    def close(self) -> None:
        """End it."""
        end([self._process])
        if self._process.stdout:
            self._process.stdout.close()

    def _read(self) -> str:
        return self._process.stdout.readline().strip() if self._process.stdout else ""
