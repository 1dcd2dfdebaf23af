"""A driver in a process of its own, as an operator starts it: it knows a broker and a folder, and nothing else."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ENDS_WITHIN_S = 60.0


@contextmanager
def driver_process(bootstrap: str, folder: Path) -> Iterator[tuple[int, Path]]:
    """Process id and log of the driver, which keeps its tables in `folder`/tables; it ends with the block."""
    config, log = folder / "lagwise.toml", folder / "log"
    config.write_text(
        f'[kafka.properties]\n"bootstrap.servers" = "{bootstrap}"\n[tables]\nroot = "{folder}/tables"\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pipeline.run.main", "--config", str(config)]
    with log.open("w") as lines, subprocess.Popen(command, stdout=lines, stderr=lines) as process:
        try:
            yield process.pid, log
        finally:
            process.terminate()
            process.wait(_ENDS_WITHIN_S)


def batches(log: Path) -> int:
    """Finished so far, by the driver's log."""
    return log.read_text(encoding="utf-8").count(" batch batch_id=")
