"""The real tools that judge what is in deploy/: those that come with `--group deploy`, and some that are fetched once.

What cannot be had on a machine is named, with the way to get it, and the tests that need it fail.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
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
    """A program that Go builds from its modules, in a minute or two, and that is kept."""
    module = _MODULES[name]
    home = _FETCHED / module.replace("/", "_")
    with _turn():
        if not (home / name).exists():
            # A program is named after the last part of its path.
            _build(["install", module], home, home)
            (home / module.partition("@")[0].rpartition("/")[2]).rename(home / name)
    return home / name


def own_go_tool(folder: Path) -> Path:
    """The same of a program whose source is here."""
    sources = [(folder / name).read_bytes() for name in ("go.mod", "go.sum", "main.go")]
    program = _FETCHED / f"{folder.name}-{sha256(b''.join(sources)).hexdigest()[:12]}"
    with _turn():
        if not program.exists():
            _build(["build", "-o", str(program), "."], program.parent, folder)
    return program


@contextmanager
def _turn() -> Iterator[None]:
    """One process builds, the others wait."""
    _FETCHED.mkdir(exist_ok=True)
    with (_FETCHED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(arguments: list[str], target: Path, at: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.fail("Go is missing, which builds helm and others: install Go 1.26, https://go.dev/dl")
    target.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [go, arguments[0], "-ldflags=-s -w", *arguments[1:]],
        env=os.environ | {"GOBIN": str(target), "CGO_ENABLED": "0"},
        cwd=at,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"go {' '.join(arguments)} has failed: {done.stderr[-500:]}")


def said(command: list[object], *, text: str | None = None, at: Path = _ROOT, refused: bool = False) -> str:
    """What a tool says in this folder, on both channels; it has to agree, or to refuse."""
    done = subprocess.run(
        [str(part) for part in command],
        input=text,
        cwd=at,
        env=os.environ | {"PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    assert bool(done.returncode) == refused, output
    return output
