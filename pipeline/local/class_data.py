"""Class data archives: later JVMs map classes into memory that one JVM has read and verified from a set of jars.

    <cache>/class-data/<kind>-<key>-<size>.jsa

Classes take half of the processor time of a start of Spark, and a third of that of a Kafka broker. An archive is a copy
that may be deleted at any time: a JVM that it does not fit (another build of Java, a jar with another time) ignores it
and starts as without one. A truncated one would crash the JVM, so the size is part of the name.
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
    """Path of the archive of these jars for the Java of this machine, without the size in its name."""
    java, _ = candidate()
    key = hashlib.sha256()
    for file in (*((java.resolve(),) if java and java.is_file() else ()), *class_path):
        state = file.stat()
        key.update(f"{file}\0{state.st_size}\0{state.st_mtime_ns}\n".encode())
    return cache_home() / "class-data" / f"{kind}-{key.hexdigest()[:20]}"


def found(archive: Path) -> Path | None:
    """The file of an archive, if it exists and is complete."""
    files = archive.parent.glob(f"{archive.name}-*.jsa")
    return next((file for file in files if file.stem == f"{archive.name}-{file.stat().st_size}"), None)


def use(archive: Path) -> tuple[str, ...]:
    """Options for a JVM that uses this archive; none without an archive."""
    file = found(archive)
    # Readers of a broker's or driver's output need no warning about one that does not fit.
    return (f"-XX:SharedArchiveFile={file}", "-Xshare:auto", "-Xlog:cds*=off") if file else ()


def one_line(options: Iterable[str]) -> str:
    """Options as Spark takes them: separated by spaces, in quotation marks if they contain one."""
    return " ".join(f'"{option}"' if " " in option else option for option in options)


def make(file: Path) -> tuple[str, ...]:
    """Options for a JVM that writes an archive to this file when it exits normally."""
    # Otherwise it names each class that cannot be archived.
    return (f"-XX:ArchiveClassesAtExit={file}", "-Xlog:cds*=off")


def put_in_place(made: Path, archive: Path) -> bool:
    """Move a complete archive to its path, and delete archives of the same kind that are a month old.

    Returns:
        Whether there is one: a Java without an archive of its own classes writes none.
    """
    if not made.is_file():
        return False
    for old in archive.parent.glob(f"{archive.name.partition('-')[0]}-*.jsa"):
        # Another checkout, or another Java, may have its own in the same cache.
        if old.name.startswith(archive.name) or time.time() - old.stat().st_mtime > _KEPT_S:
            old.unlink(missing_ok=True)
    made.replace(archive.with_name(f"{archive.name}-{made.stat().st_size}.jsa"))
    return True
