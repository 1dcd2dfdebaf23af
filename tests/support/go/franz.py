"""The consumer of franz-go in tests/support/go/member, built once for a run of the tests."""

import atexit
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_SOURCES = Path(__file__).with_name("member")


@cache
def franz_member() -> Path:
    """The program; without Go the test fails."""
    go = shutil.which("go")
    if go is None:
        pytest.fail("Go is missing, which builds a consumer of franz-go: install Go 1.26, https://go.dev/dl")
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    program = Path(folder.name) / "member"
    done = subprocess.run(
        [go, "build", "-o", str(program), "."], cwd=_SOURCES, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return program
