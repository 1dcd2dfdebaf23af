"""The archive that deploy/pack.sh makes for executors."""

import os
import subprocess
from pathlib import Path

_PACK = Path(__file__).parents[3] / "deploy" / "pack.sh"
_WITHIN_S = 600.0


def pack(archive: Path) -> Path:
    """Make it in this file; takes half a minute, and an index of packages or pip's cache of one."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(_PACK), str(archive)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return archive
