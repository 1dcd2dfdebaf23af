"""Make `lagwise-follow.jar` with `javac` and `jar` alone: python deploy/java/build.py [file [folder of more sources]].

It is compiled against the oldest kafka-clients that it is for, which the project's own fetcher brings.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pipeline.errors import MissingDependencyError
from pipeline.local.jars import resolve
from pipeline.local.java import find_tool

KAFKA_CLIENTS = ("org.apache.kafka:kafka-clients:3.9.1",)
"""slf4j comes with it."""
SOURCES = Path(__file__).parent / "src"
JAR = Path(__file__).parents[2] / "build" / "lagwise-follow.jar"


def build(target: Path, *more: Path) -> None:
    """Write the jar, in place of one that is there, with the sources in more folders if there are any.

    Raises:
        MissingDependencyError: No JDK, or kafka-clients could not be fetched; the message says what to do.
        CalledProcessError: A source does not compile; the compiler has said where.
    """
    javac, jar = find_tool("javac"), find_tool("jar")
    class_path = os.pathsep.join(map(str, resolve(KAFKA_CLIENTS, report=_say)))
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as classes:
        sources = sorted(str(source) for folder in (SOURCES, *more) for source in folder.rglob("*.java"))
        options = ("--release", "17", "-Xlint:all", "-Werror", "-cp", class_path, "-d", classes)
        subprocess.run([javac, *options, *sources], check=True)
        subprocess.run([jar, "--create", "--file", str(target), "-C", classes, "."], check=True)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


def main() -> int:
    """Build; the exit status."""
    target, *more = map(Path, sys.argv[1:] or [JAR])
    try:
        build(target, *more)
    except MissingDependencyError as error:
        _say(str(error))
        return 1
    except subprocess.CalledProcessError as error:
        return error.returncode
    _say(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
