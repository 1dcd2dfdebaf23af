"""Make `lagwise-follow-<version>.jar` with `javac` alone: python deploy/java/build.py [file [folder of more sources]].

It is compiled against the oldest kafka-clients that it is for. Its place is named in KAFKA_CLIENTS, a class path with
slf4j such as `kafka_2.13-3.9.1/libs/*`; else the project's own fetcher brings it, where `make setup` has been run, or
else Maven. Equal sources and an equal JDK make equal bytes.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import MissingDependencyError
from pipeline.local.jars import resolve
from pipeline.local.java import find_tool

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES = HERE / "src"
OLDEST_KAFKA = "3.9.1"
PLACE_VARIABLE = "KAFKA_CLIENTS"

_LICENSE = ROOT / "LICENSE"
_PYPROJECT = ROOT / "pyproject.toml"
_MAVEN_FOLDER = "META-INF/maven/lagwise/lagwise-follow"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first time that a zip can tell."""
_FILE_MODE = 0o100644 << 16


def version() -> str:
    """The version of this project."""
    found = re.search(r'^version = "(.+)"$', _PYPROJECT.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise MissingDependencyError(f"{_PYPROJECT} names no version")
    return found[1]


def pom() -> str:
    """Coordinates, licence and dependencies for Maven, Gradle and their like."""
    template = (HERE / "pom.xml").read_text(encoding="utf-8")
    return template.replace("@version@", version()).replace("@kafka@", OLDEST_KAFKA)


def build(target: Path, *more: Path) -> None:
    """Write the jar, in place of one that is there, with the sources in more folders if there are any.

    Raises:
        MissingDependencyError: No JDK, or kafka-clients could not be fetched; the message says what to do.
        CalledProcessError: A source does not compile; the compiler has said where.
    """
    javac = find_tool("javac")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as classes:
        sources = sorted(str(source) for folder in (SOURCES, *more) for source in folder.rglob("*.java"))
        options = (
            "--release",
            "17",
            "-proc:none",
            "-Xlint:all",
            "-Werror",
            "-cp",
            _class_path(),
            "-d",
            classes,
        )
        subprocess.run([javac, *options, *sources], check=True)
        with zipfile.ZipFile(target, "w") as jar:
            for name, content in (*_meta(), *_files(Path(classes))):
                # Not compressed, for one release of zlib does not compress as the next does.
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.external_attr = _FILE_MODE
                jar.writestr(entry, content)


def _meta() -> Iterator[tuple[str, bytes]]:
    """What is in the jar besides classes, the manifest first, where readers look for it."""
    titles = f"Implementation-Title: lagwise-follow\r\nImplementation-Version: {version()}\r\n"
    manifest = f"Manifest-Version: 1.0\r\nAutomatic-Module-Name: lagwise.follow\r\n{titles}\r\n"
    properties = f"artifactId=lagwise-follow\ngroupId=lagwise\nversion={version()}\n"
    yield "META-INF/MANIFEST.MF", manifest.encode()
    yield "META-INF/LICENSE", _LICENSE.read_bytes()
    yield f"{_MAVEN_FOLDER}/pom.properties", properties.encode()
    yield f"{_MAVEN_FOLDER}/pom.xml", pom().encode()


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    return ((name, (folder / name).read_bytes()) for name in names)


def _class_path() -> str:
    """kafka-clients and slf4j."""
    place = os.environ.get(PLACE_VARIABLE)
    if place:
        return place
    if find_spec("pyspark") is not None:
        # slf4j comes with it.
        return os.pathsep.join(
            map(str, resolve((f"org.apache.kafka:kafka-clients:{OLDEST_KAFKA}",), report=_say))
        )
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingDependencyError(
            f"there is no kafka-clients to compile against: set {PLACE_VARIABLE} to a class path of kafka-clients "
            f"{OLDEST_KAFKA} and slf4j-api, such as kafka_2.13-{OLDEST_KAFKA}/libs/*, or install Maven, "
            "or run make setup"
        )
    return _by_maven(maven)


def _by_maven(maven: str) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        described, answer = Path(scratch, "pom.xml"), Path(scratch, "class-path")
        described.write_text(pom(), encoding="utf-8")
        goal = ("dependency:build-classpath", f"-Dmdep.outputFile={answer}")
        done = subprocess.run(
            [maven, "-q", "-B", "-f", str(described), *goal], check=False, capture_output=True, text=True
        )
        if done.returncode or not answer.is_file():
            said = (done.stdout + done.stderr).strip() or "it does not say why"
            raise MissingDependencyError(f"Maven did not bring kafka-clients {OLDEST_KAFKA}: {said}")
        return answer.read_text(encoding="utf-8").strip()


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


def main() -> int:
    """Build; the exit status."""
    default = ROOT / "build" / f"lagwise-follow-{version()}.jar"
    target, *more = map(Path, sys.argv[1:] or [default])
    try:
        build(target, *more)
    except MissingDependencyError as error:
        _say(str(error))
        return 1
    except subprocess.CalledProcessError as error:
        return error.returncode
    _say(f"wrote {target}")
    if not more:
        target.with_suffix(".pom").write_text(pom(), encoding="utf-8")
        _say(f"wrote {target.with_suffix('.pom')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
