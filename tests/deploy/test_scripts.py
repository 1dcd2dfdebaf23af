"""Shell scripts are without lint."""

from pathlib import Path

from tests.deploy.chart import ROOT
from tests.deploy.tools import python_tool, said

SCRIPTS = [ROOT / ".ci" / "run", *sorted((ROOT / "deploy").rglob("*.sh"))]


def test_scripts_are_without_lint() -> None:
    assert len(SCRIPTS) > 2
    assert said([python_tool("shellcheck"), *SCRIPTS]) == ""


def test_lint_is_found(tmp_path: Path) -> None:
    file = tmp_path / "wrong.sh"
    file.write_text("#!/bin/sh\nrm -rf $1/*\n")

    assert "SC2086" in said([python_tool("shellcheck"), file], refused=True)
