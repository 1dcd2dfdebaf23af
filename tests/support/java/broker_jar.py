"""`lagwise-broker-assignor.jar` and the programs in tests/support/java/broker, made once for a run of the tests."""

import atexit
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest

from pipeline.errors import MissingDependencyError
from pipeline.local.embedded import node as embedded_node
from pipeline.local.embedded.config import KAFKA
from pipeline.local.jars import Report, resolve
from pipeline.local.java import find_tool

ROOT = Path(__file__).parents[3]
SOURCES = Path(__file__).with_name("broker")
OLDEST = "4.0.0"
OF_THE_DEMO = KAFKA[0].rpartition(":")[2]
NEWEST = "4.4.0"
VERSIONS = (OLDEST, "4.1.2", OF_THE_DEMO, NEWEST)
ASSIGNOR = "lagwise.broker.PlanAssignor"


class BrokerJar:
    """The jar, and the programs that use it.

    Attributes:
        file: The jar.
    """

    def __init__(self, folder: Path) -> None:
        """Make all of it.

        Raises:
            MissingDependencyError: No JDK.
        """
        javac = find_tool("javac")
        self.file = folder / "lagwise-broker-assignor.jar"
        self._classes = folder / "classes"
        _made(sys.executable, str(ROOT / "deploy/java/build.py"), "--broker-assignor", str(self.file))
        sources = sorted(map(str, SOURCES.rglob("*.java")))
        path = os.pathsep.join(map(str, (self.file, *kafka(OLDEST))))
        _made(str(javac), "--release", "17", "-cp", path, "-d", str(self._classes), *sources)

    def command(self, version: str, program: str, *arguments: str) -> list[str]:
        """What runs a program with the jars of a broker of that version."""
        path = os.pathsep.join(map(str, (self.file, self._classes, *kafka(version))))
        return [str(find_tool("java")), "-Xmx256m", "-cp", path, program, *arguments]


def kafka(version: str) -> tuple[Path, ...]:
    """The jars that a broker of that version has on its class path."""
    return resolve(_coordinates(version))


def _coordinates(version: str) -> tuple[str, ...]:
    broker, logger = KAFKA
    return (f"{broker.rpartition(':')[0]}:{version}", logger)


@contextmanager
def brokers_with_jar(version: str) -> Iterator[None]:
    """Brokers that are started within the block are of that version, and have the jar on their class path."""
    jar = broker_jar().file

    def resolved(coordinates: tuple[str, ...], *, report: Report | None = None) -> tuple[Path, ...]:
        return (*resolve(coordinates, report=report), jar)

    with ExitStack() as patches:
        patches.enter_context(patch.object(embedded_node, "KAFKA", _coordinates(version)))
        patches.enter_context(patch.object(embedded_node, "resolve", resolved))
        yield


@cache
def broker_jar() -> BrokerJar:
    """The jar, or a skipped test where there is no JDK to make it with."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    try:
        return BrokerJar(Path(folder.name))
    except MissingDependencyError as error:
        pytest.skip(str(error))


def _made(*command: str) -> None:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
