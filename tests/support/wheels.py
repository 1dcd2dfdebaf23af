"""Wheel and source archive of a source tree, and environments that have nothing else of it."""

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "deploy" / "constraints.txt"


@dataclass(frozen=True)
class Built:
    """What `make wheel sdist` makes."""

    wheel: Path
    sdist: Path


@dataclass(frozen=True)
class Environment:
    """An environment with the wheel in it; its processes run in a folder of their own and see no checkout."""

    home: Path
    place: Path

    def program(self, name: str) -> str:
        """Path of a program that was installed."""
        return str(self.home / "bin" / name)

    def packages(self) -> set[str]:
        """Names of the distributions that are installed."""
        (folder,) = self.home.glob("lib/python*/site-packages")
        return {found.name.partition("-")[0] for found in folder.glob("*.dist-info")}

    def run(self, name: str, *arguments: str, within_s: float = 60) -> "subprocess.CompletedProcess[str]":
        """A program that has ended, with what it said."""
        return subprocess.run(
            [self.program(name), *arguments],
            cwd=self.place,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )


def clean_environment() -> dict[str, str]:
    """The variables of this process, less what would show an interpreter the way to the checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}


def constraints_with(others: Iterable[str], into: Path) -> Path:
    """The constraints in a file of their own, with other versions of some packages (`name==version`)."""
    names = tuple(f"{one.partition('==')[0]}==" for one in others)
    kept = [
        line for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines() if not line.startswith(names)
    ]
    into.write_text("\n".join([*kept, *others, ""]), encoding="utf-8")
    return into


def build(source: Path, target: Path) -> Built:
    """Wheel and source archive of a source tree, with the build backend that is installed here."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target)]
    subprocess.run(command, cwd=source, env=clean_environment(), capture_output=True, check=True)
    (wheel,), (sdist,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return Built(wheel=wheel, sdist=sdist)
