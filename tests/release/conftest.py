"""The wheel and the source archive of this checkout, and environments in which nothing else of it is."""

import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.wheels import ROOT, Built, Environment, build, clean_environment, constraints_with


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Environment]:
    """Makes an environment with nothing but the wheel and some of its extras, by their names with commas.

    Versions are those of the constraints, but for what is given as another one.
    """

    def install(extras: str, *others: str) -> Environment:
        what = f"lagwise[{extras}] @ {built.wheel.as_uri()}" if extras else str(built.wheel)
        return _environment(tmp_path_factory.mktemp("environment"), what, others)

    return install


@pytest.fixture(scope="session")
def follow_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("follow")
    command = [sys.executable, str(ROOT / "deploy" / "follow" / "build.py"), str(target)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = target.iterdir()
    return wheel


@pytest.fixture(scope="session")
def follows(follow_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Environment]:
    """Makes an environment with nothing but the wheel for consumers and one of its extras."""

    def install(extra: str) -> Environment:
        what = f"lagwise-follow[{extra}] @ {follow_wheel.as_uri()}"
        return _environment(tmp_path_factory.mktemp("consumer"), what, ())

    return install


def _environment(folder: Path, what: str, others: Sequence[str]) -> Environment:
    made = Environment(folder / "venv", folder / "place")
    made.place.mkdir()
    venv.create(made.home, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", made.program("python"), "install", "--quiet"]
    subprocess.run(
        [*pip, "--constraint", str(constraints_with(others, folder / "constraints.txt")), what],
        env=clean_environment(),
        cwd=made.place,
        check=True,
    )
    return made
