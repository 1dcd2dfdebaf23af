"""A second run, alone, for the few files in which a test with a real broker or a foreign client failed beside others.

Foreign clients rebalance by themselves where a machine is slow, and two workers share two cores: one in some thousand
such tests fails for that, and a defect fails twice. The names of those that passed only alone are printed: a test that
is seen there often is to be mended. Exit status: as of pytest's second run; 1 where more than three tests failed.
"""

import json
import subprocess
import sys
from pathlib import Path

_FAILED = Path(".pytest_cache/v/cache/lastfailed")
_MOST = 3


def main(folders: list[str]) -> int:
    """Run again the files of `folders` in which pytest's latest run saw failures; its exit status."""
    failed = [name for name in json.loads(_FAILED.read_text()) if name.startswith(tuple(folders))]
    if not 0 < len(failed) <= _MOST:
        sys.stdout.write(f"{len(failed)} tests failed: only up to {_MOST} are run again\n")
        return 1
    files = sorted({name.split("::")[0] for name in failed})
    sys.stdout.write(f"\nAgain, alone, for {', '.join(failed)}:\n")
    sys.stdout.flush()
    status = subprocess.call([sys.executable, "-m", "pytest", *files, "-q", "-p", "no:randomly"])
    if status == 0:
        sys.stdout.write(f"PASSED ONLY ALONE: {', '.join(failed)}\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
