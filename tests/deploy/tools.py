"""The real tools that judge what is in deploy/: those that come with `--group deploy`, and some that are fetched once.

What cannot be had on a machine is named, with the way to get it, and the tests that need it fail.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_BIN = Path(sys.executable).parent
_FETCHED = Path(sys.prefix) / "tools"
_MODULES = {
    "helm": "helm.sh/helm/v3/cmd/helm@v3.22.0",
    # The loader of `docker compose`, as a command that only checks.
    "compose": "github.com/compose-spec/compose-go/v2/cmd@v2.16.2",
}


def python_tool(name: str) -> Path:
    """A program that a package of `--group deploy` brings."""
    program = _BIN / name
    if not program.exists():
        pytest.fail(f"{name} is missing: .venv/bin/pip install -c deploy/constraints.txt --group deploy")
    return program


def system_tool(name: str, package: str) -> Path:
    """A program of the system."""
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is missing: apt-get install {package}")
    return Path(found)


def go_tool(name: str) -> Path:
    """A program that Go builds from its modules, in two minutes, and that is kept."""
    module = _MODULES[name]
    home = _FETCHED / module.replace("/", "_")
    program = home / name
    if not program.exists():
        go = shutil.which("go")
        if go is None:
            pytest.fail(
                f"{name} is missing, and Go, which builds it, too: install Go 1.25, https://go.dev/dl"
            )
        home.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [go, "install", "-ldflags=-s -w", module],
            env=os.environ | {"GOBIN": str(home), "CGO_ENABLED": "0"},
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.fail(f"{name} cannot be built: go install {module}: {done.stderr[-500:]}")
        # A program is named after the last part of its path.
        (home / module.partition("@")[0].rpartition("/")[2]).rename(program)
    return program


def said(command: list[object], *, at: Path = _ROOT, refused: bool = False) -> str:
    """What a tool says in this folder, on both channels; it has to agree, or to refuse."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=at,
        env=os.environ | {"PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    assert bool(done.returncode) == refused, output
    return output
