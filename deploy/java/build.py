"""Make a jar with `javac` alone: python deploy/java/build.py [--broker-assignor] [file [folder of more sources]].

It makes `lagwise-follow-<version>.jar`, for consumers, or `lagwise-broker-assignor-<version>.jar`, for brokers. Each is
compiled against the oldest Kafka that it is for. Its place is named in KAFKA_CLIENTS or KAFKA_BROKER, a class path with
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
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import MissingDependencyError
from pipeline.local.jars import resolve
from pipeline.local.java import find_tool

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES = HERE / "src" / "lagwise"
SHARED = "control"
"""The package that both jars have."""

_LICENSE = ROOT / "LICENSE"
_PYPROJECT = ROOT / "pyproject.toml"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first time that a zip can tell."""
_FILE_MODE = 0o100644 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A jar and what it is made of."""

    name: str
    """Maven's artifact id, and the file's name before the version."""
    description: str
    package: str
    """Its own package under `lagwise`."""
    artifact: str
    """Of Kafka's, that it is compiled against; slf4j comes with it."""
    oldest: str
    """Version of that artifact."""
    place_variable: str
    """Environment variable with a class path that has the artifact."""

    @property
    def title(self) -> str:
        """File name without its suffix."""
        return f"{self.name}-{version()}"


FOLLOW = Product(
    name="lagwise-follow",
    description="Assignors for Kafka's Java consumer that apply the assignments lagwise publishes.",
    package="follow",
    artifact="kafka-clients",
    oldest="3.9.1",
    place_variable="KAFKA_CLIENTS",
)
BROKER_ASSIGNOR = Product(
    name="lagwise-broker-assignor",
    description="An assignor for Kafka's brokers that applies the assignments lagwise publishes.",
    package="broker",
    artifact="kafka-group-coordinator-api",
    oldest="4.0.0",
    place_variable="KAFKA_BROKER",
)


def version() -> str:
    """The version of this project."""
    found = re.search(r'^version = "(.+)"$', _PYPROJECT.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise MissingDependencyError(f"{_PYPROJECT} names no version")
    return found[1]


def pom(product: Product) -> str:
    """Coordinates, licence and dependencies for Maven, Gradle and their like."""
    text = (HERE / "pom.xml").read_text(encoding="utf-8")
    for name, value in (
        ("name", product.name),
        ("description", product.description),
        ("version", version()),
        ("artifact", product.artifact),
        ("kafka", product.oldest),
    ):
        text = text.replace(f"@{name}@", value)
    return text


def build(product: Product, target: Path, *more: Path) -> None:
    """Write the jar, in place of one that is there, with the sources in more folders if there are any.

    Raises:
        MissingDependencyError: No JDK, or Kafka's jars could not be fetched; the message says what to do.
        CalledProcessError: A source does not compile; the compiler has said where.
        OSError: The jar cannot be written; one that was there is as it was.
    """
    javac = find_tool("javac")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the jar takes its place at once, and a jar that is there stays if anything fails.
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        classes, made = Path(scratch, "classes"), Path(scratch, target.name)
        folders = (SOURCES / SHARED, SOURCES / product.package, *more)
        sources = sorted(str(source) for folder in folders for source in folder.rglob("*.java"))
        options = (
            "--release",
            "17",
            "-proc:none",
            "-Xlint:all",
            "-Werror",
            "-cp",
            _class_path(product),
            "-d",
            str(classes),
        )
        subprocess.run([javac, *options, *sources], check=True)
        with zipfile.ZipFile(made, "w") as jar:
            for name, content in (*_meta(product), *_files(classes)):
                # Not compressed, for one release of zlib does not compress as the next does.
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.external_attr = _FILE_MODE
                jar.writestr(entry, content)
        made.replace(target)


def _meta(product: Product) -> Iterator[tuple[str, bytes]]:
    """What is in the jar besides classes, the manifest first, where readers look for it."""
    titles = f"Implementation-Title: {product.name}\r\nImplementation-Version: {version()}\r\n"
    manifest = f"Manifest-Version: 1.0\r\nAutomatic-Module-Name: lagwise.{product.package}\r\n{titles}\r\n"
    properties = f"artifactId={product.name}\ngroupId=lagwise\nversion={version()}\n"
    maven = f"META-INF/maven/lagwise/{product.name}"
    yield "META-INF/MANIFEST.MF", manifest.encode()
    yield "META-INF/LICENSE", _LICENSE.read_bytes()
    yield f"{maven}/pom.properties", properties.encode()
    yield f"{maven}/pom.xml", pom(product).encode()


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    return ((name, (folder / name).read_bytes()) for name in names)


def _class_path(product: Product) -> str:
    """Kafka's artifact and slf4j."""
    place = os.environ.get(product.place_variable)
    if place:
        return place
    if find_spec("pyspark") is not None:
        # slf4j comes with it.
        coordinates = f"org.apache.kafka:{product.artifact}:{product.oldest}"
        return os.pathsep.join(map(str, resolve((coordinates,), report=_say)))
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingDependencyError(
            f"there is no {product.artifact} to compile against: set {product.place_variable} to a class path of "
            f"{product.artifact} {product.oldest} and slf4j-api, such as kafka_2.13-{product.oldest}/libs/*, or "
            "install Maven, or run make setup"
        )
    return _by_maven(product, maven)


def _by_maven(product: Product, maven: str) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        described, answer = Path(scratch, "pom.xml"), Path(scratch, "class-path")
        described.write_text(pom(product), encoding="utf-8")
        goal = ("dependency:build-classpath", f"-Dmdep.outputFile={answer}")
        done = subprocess.run(
            [maven, "-q", "-B", "-f", str(described), *goal], check=False, capture_output=True, text=True
        )
        if done.returncode or not answer.is_file():
            said = (done.stdout + done.stderr).strip() or "it does not say why"
            raise MissingDependencyError(f"Maven did not bring {product.artifact} {product.oldest}: {said}")
        return answer.read_text(encoding="utf-8").strip()


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


def main() -> int:
    """Build; the exit status."""
    arguments = sys.argv[1:]
    product = FOLLOW
    if arguments[:1] == ["--broker-assignor"]:
        product = BROKER_ASSIGNOR
        del arguments[0]
    target, *more = map(Path, arguments or [ROOT / "build" / f"{product.title}.jar"])
    try:
        build(product, target, *more)
        _say(f"wrote {target}")
        if not more:
            target.with_suffix(".pom").write_text(pom(product), encoding="utf-8")
            _say(f"wrote {target.with_suffix('.pom')}")
    except MissingDependencyError as error:
        _say(str(error))
        return 1
    except subprocess.CalledProcessError as error:
        return error.returncode
    except OSError as error:
        _say(
            f"{target} cannot be written: {error.strerror or error}; name another file, or make room for this one"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
