"""`lagwise-follow.jar` and the programs in tests/support/java/members, made once for a run of the tests."""

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pipeline.errors import MissingDependencyError
from pipeline.local.jars import resolve
from pipeline.local.java import find_java

ROOT = Path(__file__).parents[3]
SOURCES = Path(__file__).with_name("members")
LOGGER = "org.slf4j:slf4j-simple:1.7.36"
"""Of the slf4j that kafka-clients asks for."""
JSON = "com.fasterxml.jackson.core:jackson-databind:2.19.2"
"""Of Kafka's own tokens: kafka-clients leaves it to whoever uses them."""
VERSIONS = ("3.9.1", "4.0.1", "4.2.0")
NEWEST = VERSIONS[-1]


class JavaJar:
    """The jar, and the programs that use it.

    Attributes:
        file: The jar.
    """

    def __init__(self, folder: Path) -> None:
        """Make all of it.

        Raises:
            MissingDependencyError: No JDK.
        """
        java = find_java()
        self.file = folder / "lagwise-follow.jar"
        self._classes = folder / "classes"
        self._made(sys.executable, str(ROOT / "deploy/java/build.py"), str(self.file))
        javac = java.resolve().with_name("javac")
        sources = sorted(map(str, SOURCES.rglob("*.java")))
        # A program is compiled once, too: what it calls is the same in all versions.
        self._made(
            str(javac),
            "--release",
            "17",
            "-cp",
            self.class_path(VERSIONS[0]),
            "-d",
            str(self._classes),
            *sources,
        )

    def class_path(self, version: str = NEWEST, *more: str) -> str:
        """Of a program, with kafka-clients of that version, and more by their coordinates."""
        jars = resolve((f"org.apache.kafka:kafka-clients:{version}", LOGGER, *more))
        return os.pathsep.join(map(str, (self.file, self._classes, *jars)))

    def command(
        self, program: str, *arguments: str, version: str = NEWEST, more: Sequence[str] = ()
    ) -> list[str]:
        """What runs a program."""
        logger = "-Dorg.slf4j.simpleLogger."
        levels = (f"{logger}defaultLogLevel=warn", f"{logger}log.lagwise=info")
        path = self.class_path(version, *more)
        return [str(find_java()), "-Xmx256m", *levels, "-cp", path, program, *arguments]

    def _made(self, *command: str) -> None:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        if done.returncode and "without javac" in done.stderr:
            raise MissingDependencyError(done.stderr.strip())
        assert done.returncode == 0, done.stderr


@cache
def java_jar() -> JavaJar:
    """The jar, or a skipped test where there is no JDK to make it with."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    try:
        return JavaJar(Path(folder.name))
    except MissingDependencyError as error:
        pytest.skip(str(error))


def replayed(jar: JavaJar, lives: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """What the Java member answers to each event of each life; `Replay.java` says what a life is."""
    questions = "".join(json.dumps(one) + "\n" for one in lives)
    done = subprocess.run(
        jar.command("lagwise.follow.Replay"),
        input=questions,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return map(json.loads, done.stdout.splitlines())
