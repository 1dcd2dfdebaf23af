"""`lagwise run` on a configuration that cannot be used; why it cannot is tested with `load.load`."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def _half_written(file: Path) -> None:
    file.write_text('[kafka.properties]\n"bootstrap.servers" = "localhost:1"\n[plan]\nstrategy = "lag-aw')


def _unreadable(file: Path) -> None:
    file.mkdir()


@pytest.mark.parametrize(
    ("make", "reason"),
    [(_half_written, "not TOML"), (_unreadable, "cannot be read")],
    ids=["half-written", "unreadable"],
)
def test_unusable_config_is_one_line_and_status_1(
    tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    file = tmp_path / "lagwise.toml"
    make(file)
    command = [
        sys.executable,
        "-c",
        "from pipeline.operate.cli.app import main; main()",
        "run",
        "--config",
        str(file),
    ]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    (line,) = done.stderr.splitlines()
    assert f"{file}: {reason}" in line
    assert (done.returncode, done.stdout) == (1, "")
