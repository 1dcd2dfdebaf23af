"""Class data archives: what one JVM has read and checked of a set of jars is mapped into memory by those after it.

    <cache>/class-data/<kind>-<key>.jsa

Half of the processor time that Spark takes to start, and a third of a Kafka broker's, goes into classes. An archive is
a copy that may be deleted at any time: a JVM for which it does not fit (another build of Java, a jar with another
time) leaves it aside by itself and starts as it would without one.
Source: JEP 350, dynamic archives.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pipeline.local.jars import cache_home, pyspark_jars
from pipeline.local.java import candidate

Kind = Literal["spark", "kafka"]


def spark_class_path(jars: Iterable[Path]) -> tuple[Path, ...]:
    """The class path of a driver on this machine that brings these jars.

    Raises:
        MissingDependencyError: pyspark is not installed.
    """
    return (*jars, *sorted(pyspark_jars().glob("*.jar")))


def archive(kind: Kind, class_path: Iterable[Path]) -> Path:
    """Where the archive of these jars is for the Java of this machine, whether or not it has been made."""
    java, _ = candidate()
    key = hashlib.sha256()
    for file in (*((java.resolve(),) if java and java.is_file() else ()), *class_path):
        state = file.stat()
        key.update(f"{file}\0{state.st_size}\0{state.st_mtime_ns}\n".encode())
    return cache_home() / "class-data" / f"{kind}-{key.hexdigest()[:20]}.jsa"


def use(file: Path) -> tuple[str, ...]:
    """Options for a JVM that takes this archive; none when there is no such file."""
    # One that does not fit is no news for whoever reads the output of a broker or a driver.
    return (f"-XX:SharedArchiveFile={file}", "-Xshare:auto", "-Xlog:cds=off") if file.is_file() else ()


def make(file: Path) -> tuple[str, ...]:
    """Options for a JVM that, when it ends in good order, leaves this archive."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # Classes that cannot be archived are named one by one.
    return (f"-XX:ArchiveClassesAtExit={file}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def put_in_place(made: Path, file: Path) -> bool:
    """Give an archive its name once it is whole, and drop those of the same kind: of other versions, as a rule.

    Returns:
        Whether there was one: a Java without an archive of its own classes makes none.
    """
    if not made.is_file():
        return False
    for old in file.parent.glob(f"{file.name.partition('-')[0]}-*.jsa"):
        if old != made:
            old.unlink()
    made.replace(file)
    return True
