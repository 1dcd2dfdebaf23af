"""The pinned packages fit together on every Python that the distribution names, and can be had for it as wheels."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.wheels import CONSTRAINTS, ROOT, Built, clean_environment

_MENTIONED = re.compile(r'"Programming Language :: Python :: (3\.\d+)"')
PYTHONS = _MENTIONED.findall((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_EXTRAS = "stream,demo,serve,confluent"
_CLIENTS = "confluent,kafka-python,aiokafka"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one dependency that comes as source, made into a wheel: pip resolves for another Python from wheels only."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    subprocess.run(
        [*command, "--constraint", str(CONSTRAINTS), "pyspark"], env=clean_environment(), check=True
    )
    return folder


def pins(python: str) -> list[str]:
    """Those of the constraints that hold for a Python: pip itself would ask the one that it runs in."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    stated = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return [
        f"{one.name}{one.specifier}"
        for one in stated
        if one.marker is None or one.marker.evaluate({"python_version": python})
    ]


def test_the_range_of_pythons_is_named() -> None:
    assert PYTHONS == ["3.10", "3.11", "3.12", "3.13"]


@pytest.mark.parametrize("python", PYTHONS)
def test_both_wheels_with_all_extras_resolve_to_the_pinned_packages(
    built: Built, follow_wheel: Path, wheels: Path, tmp_path: Path, python: str
) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"),
            *("--python-version", python, "--only-binary=:all:", "--target", str(tmp_path)),
            *("--find-links", str(wheels), *pins(python)),
            f"lagwise[{_EXTRAS}] @ {built.wheel.as_uri()}",
            f"lagwise-follow[{_CLIENTS}] @ {follow_wheel.as_uri()}",
        ],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
