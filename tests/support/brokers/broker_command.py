"""`lagwise broker` in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lagwise_broker(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """The command with these arguments; it does not outlive a test that fails."""
    code = "import typer; from pipeline.operate.cli.broker import broker; typer.run(broker)"
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()
