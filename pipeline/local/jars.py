"""Jar files from Maven repositories, fetched by the Ivy that ships inside pyspark: no Maven, no Docker.

    <cache>/ivy/               downloads of Ivy; an interrupted download continues here
    <cache>/jars/<key>/*.jar   one complete set for each request; a folder that exists is complete
    <cache>/lock               held while a set is made: two processes cannot share Ivy's cache

`<cache>` is `lagwise` in $XDG_CACHE_HOME or ~/.cache. Behind a proxy set JAVA_TOOL_OPTIONS; for a mirror name
an Ivy settings file in LAGWISE_IVY_SETTINGS.
"""

import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from pipeline.errors import MissingDependencyError
from pipeline.local.java import find_java

SETTINGS_VARIABLE = "LAGWISE_IVY_SETTINGS"

_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
_JAR_NAME = re.compile(r"(?P<artifact>.+)-\d+\.\d.*\.jar")
# Ivy also tells each module that it finds, which would double the lines.
_PROGRESS = re.compile(r"downloading (?P<url>\S+) \.\.\.")
_NOT_FOUND = re.compile(r":: (\S+#\S+): ")
_SERVER = re.compile(r"Server access error .+")
_BROKEN_OFF = re.compile(r"\[FAILED\s+\] (\S+):")

# Delta's pom has them for Unity Catalog and for readers without Spark; tables by path need neither.
_NOT_FOR_PATH_TABLES = (
    "delta-kernel-api",
    "delta-kernel-defaults",
    "delta-kernel-unitycatalog",
    "unitycatalog-client",
    "unitycatalog-hadoop",
)

Report = Callable[[str], None]


def resolve_for_spark(coordinates: tuple[str, ...], *, report: Report | None = None) -> tuple[Path, ...]:
    """The jars that a Spark session needs for these packages besides those of pyspark, sorted.

    Raises:
        MissingDependencyError: As `resolve`.
    """
    excludes = (*_artifact_names(jar.name for jar in pyspark_jars().glob("*.jar")), *_NOT_FOR_PATH_TABLES)
    return resolve(coordinates, excludes=excludes, report=report)


def resolve(
    coordinates: tuple[str, ...], *, excludes: Collection[str] = (), report: Report | None = None
) -> tuple[Path, ...]:
    """The jars of these artifacts and their dependencies, sorted; from the cache after the first time.

    Args:
        coordinates: `group:artifact:version` each.
        excludes: Names of artifacts to leave out, with dependencies of them alone.
        report: Called with a line about each download; never if the cache has the set.

    Raises:
        MissingDependencyError: There is no Java, or an artifact cannot be downloaded, or the cache cannot be
            written; the message names it.
    """
    module = _ivy_module(coordinates, excludes)
    home = cache_home()
    target = home / "jars" / hashlib.sha256(module.encode()).hexdigest()[:20]
    with filling_cache():
        if not target.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
            with _locked(home / "lock"):
                if not target.is_dir():
                    _fill(target, module, home / "ivy", coordinates, report or _ignore)
    return tuple(sorted(target.glob("*.jar")))


def cache_home() -> Path:
    """The cache folder, whose content may be deleted whenever nothing runs.

    Raises:
        MissingDependencyError: Nothing names it, and this user has no home.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "lagwise"
    except RuntimeError:
        raise MissingDependencyError(
            "this user has no home folder for the cache: point XDG_CACHE_HOME at a folder of this user"
        ) from None


@contextmanager
def filling_cache() -> Iterator[None]:
    """Explain why the cache cannot be written.

    Raises:
        MissingDependencyError: It cannot.
    """
    try:
        yield
    except OSError as error:
        raise MissingDependencyError(
            f"{cache_home()} cannot be written: {error.strerror}; fetch as its owner (XDG_CACHE_HOME=… python -m "
            "pipeline.operate.fetch), or point XDG_CACHE_HOME at a folder of this user"
        ) from error


def _fill(target: Path, module: str, ivy_cache: Path, coordinates: tuple[str, ...], report: Report) -> None:
    """Make the set next to its folder and move it there as a whole, so that the folder is never half full."""
    report(f"Downloading {', '.join(coordinates)}; this happens once")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="partial-") as scratch:
        ivy_file = Path(scratch, "ivy.xml")
        ivy_file.write_text(module, encoding="utf-8")
        jars = Path(scratch, "jars")
        jars.mkdir()
        _run_ivy(_ivy_command(ivy_cache, ivy_file, jars), coordinates, report)
        jars.rename(target)


def _ivy_command(ivy_cache: Path, ivy_file: Path, jars: Path) -> list[str]:
    ivy = next(pyspark_jars().glob("ivy-*.jar"))
    settings = os.environ.get(SETTINGS_VARIABLE)
    return [
        *(str(find_java()), "-jar", str(ivy)),
        *(("-settings", settings) if settings else ()),
        *("-cache", str(ivy_cache), "-ivy", str(ivy_file), "-confs", "default"),
        *("-retrieve", f"{jars}/{_PATTERN}"),
    ]


def _run_ivy(command: list[str], coordinates: tuple[str, ...], report: Report) -> None:
    output: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        for line in ivy.stdout or ():
            output.append(line.rstrip())
            progress = _PROGRESS.search(line)
            if progress:
                report(progress["url"].rpartition("/")[2])
    if ivy.returncode:
        raise MissingDependencyError(_explain(output, coordinates))


def _explain(output: Iterable[str], coordinates: tuple[str, ...]) -> str:
    text = "\n".join(output)
    missing = dict.fromkeys((*_NOT_FOUND.findall(text), *_BROKEN_OFF.findall(text)))
    names = ", ".join(missing) or ", ".join(coordinates)
    server = _SERVER.search(text)
    if server is None and not _BROKEN_OFF.search(text):
        return f"no repository has {names}: check the version, or {SETTINGS_VARIABLE} if you use a mirror"
    return (
        f"could not download {names}: {server[0] if server else 'it broke off'}. Check the network; behind a "
        "proxy set JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=… -Dhttps.proxyPort=…', "
        f"for a mirror name an Ivy settings file in {SETTINGS_VARIABLE}"
    )


def _ivy_module(coordinates: tuple[str, ...], excludes: Collection[str]) -> str:
    dependencies = [_dependency(coordinate) for coordinate in sorted(coordinates)]
    exclusions = [f"<exclude module={quoteattr(name)}/>" for name in sorted(excludes)]
    return "\n".join(
        (
            '<ivy-module version="2.0"><info organisation="lagwise" module="jars" revision="1"/>',
            '<configurations><conf name="default"/></configurations>',
            *("<dependencies>", *dependencies, *exclusions, "</dependencies></ivy-module>\n"),
        )
    )


def _dependency(coordinate: str) -> str:
    group, artifact, version = map(quoteattr, coordinate.split(":"))
    return f'<dependency org={group} name={artifact} rev={version} conf="default->default"/>'


def _artifact_names(jar_names: Iterable[str]) -> tuple[str, ...]:
    """Names of artifacts, such as `log4j-1.2-api` for `log4j-1.2-api-2.24.3.jar`; none for a jar without version."""
    matches = (_JAR_NAME.fullmatch(name) for name in jar_names)
    return tuple(sorted({match["artifact"] for match in matches if match}))


def pyspark_jars() -> Path:
    """The folder of the jars of pyspark.

    Raises:
        MissingDependencyError: pyspark is not installed.
    """
    # find_spec does not import pyspark, which would take longer than everything else here.
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingDependencyError("pyspark is not installed: pip install 'lagwise[stream]'")
    return Path(spec.origin).parent / "jars"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _ignore(_line: str) -> None:
    """Discard the line."""
