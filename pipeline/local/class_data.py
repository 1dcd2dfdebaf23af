"""Class data archives: what one JVM has read and checked of a set of jars is mapped into memory by those after it.

    <cache>/class-data/<kind>-<key>-<size>.jsa

Half of the processor time that Spark takes to start, and a third of a Kafka broker's, goes into classes. An archive is
a copy that may be deleted at any time: a JVM for which it does not fit (another build of Java, a jar with another
time) leaves it aside by itself and starts as it would without one. One that was cut short would crash it, so the size
is part of the name.
Source: JEP 350, dynamic archives.
"""

import hashlib
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pipeline.local.jars import cache_home, pyspark_jars
from pipeline.local.java import candidate

Kind = Literal["spark", "kafka"]

_KEPT_S = 30 * 86_400


def spark_class_path(jars: Iterable[Path]) -> tuple[Path, ...]:
    """The class path of a driver on this machine that brings these jars.

    Raises:
        MissingDependencyError: pyspark is not installed.
    """
    return (*jars, *sorted(pyspark_jars().glob("*.jar")))


def archive(kind: Kind, class_path: Iterable[Path]) -> Path:
    """Where the archive of these jars is for the Java of this machine, but for the size in its name."""
    java, _ = candidate()
    key = hashlib.sha256()
    for file in (*((java.resolve(),) if java and java.is_file() else ()), *class_path):
        state = file.stat()
        key.update(f"{file}\0{state.st_size}\0{state.st_mtime_ns}\n".encode())
    return cache_home() / "class-data" / f"{kind}-{key.hexdigest()[:20]}"


def found(archive: Path) -> Path | None:
    """The file of an archive, if it has been made and is whole."""
    files = archive.parent.glob(f"{archive.name}-*.jsa")
    return next((file for file in files if file.stem == f"{archive.name}-{file.stat().st_size}"), None)


def use(archive: Path) -> tuple[str, ...]:
    """Options for a JVM that takes this archive; none when there is none."""
    file = found(archive)
    # One that does not fit is no news for whoever reads the output of a broker or a driver.
    return (f"-XX:SharedArchiveFile={file}", "-Xshare:auto", "-Xlog:cds*=off") if file else ()


def one_line(options: Iterable[str]) -> str:
    """Options as Spark takes them: separated by spaces, those with one in quotation marks."""
    return " ".join(f'"{option}"' if " " in option else option for option in options)


def make(file: Path) -> tuple[str, ...]:
    """Options for a JVM that, when it ends in good order, leaves an archive in this file."""
    # Classes that cannot be archived would be named one by one.
    return (f"-XX:ArchiveClassesAtExit={file}", "-Xlog:cds*=off")


def put_in_place(made: Path, archive: Path) -> bool:
    """Give an archive its name once it is whole, and drop those of the same kind that are a month old.

    Returns:
        Whether there was one: a Java without an archive of its own classes makes none.
    """
    if not made.is_file():
        return False
    for old in archive.parent.glob(f"{archive.name.partition('-')[0]}-*.jsa"):
        # Another checkout, or another Java, may have its own in the same cache.
        if old.name.startswith(archive.name) or time.time() - old.stat().st_mtime > _KEPT_S:
            old.unlink(missing_ok=True)
    made.replace(archive.with_name(f"{archive.name}-{made.stat().st_size}.jsa"))
    return True
