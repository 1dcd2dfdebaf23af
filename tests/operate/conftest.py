import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.operate.browser import browser
from tests.support.operate.table_world import World

_ENDED_WITHIN_S = 120.0


def started_demo(place: Path) -> "subprocess.Popen[str]":
    """A demo below this folder, which keeps its tables."""
    code = "from pipeline.operate.cli.app import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "demo", "--keep"], cwd=place, stdout=subprocess.PIPE, text=True
    )


def lines_until(process: "subprocess.Popen[str]", start: str) -> list[str]:
    """What it says up to the line that starts so."""
    assert process.stdout
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith(start):
            return said
    raise AssertionError(f"ended before {start!r}: {said}")


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The tables of a demo that was ended as soon as its first followers had taken a plan over."""
    place = tmp_path_factory.mktemp("demo")
    with started_demo(place) as process:
        try:
            lines_until(process, "billing: moved")
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=_ENDED_WITHIN_S)
        finally:
            process.kill()
    return World(place / ".lagwise" / "demo" / "tables")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as running:
        yield running
