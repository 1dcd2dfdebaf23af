"""Java in the demo: jars that it compiles, and the command that runs members in Java."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from pipeline.errors import MissingDependencyError
from pipeline.local.embedded.config import KAFKA
from pipeline.local.jars import resolve
from pipeline.local.java import find_java, find_tool
from pipeline.operate.demo.scenario import CLUSTER, Group

_ROOT = Path(__file__).parents[4]
_BUILD = _ROOT / "deploy" / "java" / "build.py"
_MEMBERS = _ROOT / "deploy" / "java" / "demo"
_JAR = _ROOT / "build" / "lagwise-demo.jar"
_BROKER_JAR = _ROOT / "build" / "lagwise-demo-broker.jar"


def make_jar() -> Path:
    """Build the jar of a Java group like `make java`, unless it is newer than its sources.

    Returns:
        The jar.

    Raises:
        MissingDependencyError: A JDK, the sources or their dependencies are missing; the message is one line.
    """
    _make(_JAR, more=(str(_MEMBERS),))
    return _JAR


def make_broker_jar() -> Path:
    """Build the jar of the broker's assignor like `make broker-assignor`, unless it is newer than its sources.

    It is compiled against the demo's own Kafka, which needs no download.

    Returns:
        The jar.

    Raises:
        MissingDependencyError: As `make_jar`.
    """
    kafka = os.pathsep.join(map(str, resolve(KAFKA)))
    _make(_BROKER_JAR, options=("--broker-assignor",), environment={"KAFKA_BROKER": kafka})
    return _BROKER_JAR


def _make(
    jar: Path,
    *,
    options: tuple[str, ...] = (),
    more: tuple[str, ...] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> None:
    if not _BUILD.is_file():
        raise MissingDependencyError(f"there is no {_BUILD}: run it in a clone of the source")
    # Even if the jar exists: one rule for whether there are groups that need it.
    find_tool("javac")
    if jar.is_file() and jar.stat().st_mtime > _newest_source_s():
        return
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    try:
        jar.parent.mkdir(exist_ok=True)
        # Put in place as a whole: half a jar would be newer than its sources, too, and no broker starts with it.
        with TemporaryDirectory(dir=jar.parent, prefix="partial-") as scratch:
            partial = Path(scratch, jar.name)
            made = subprocess.run(
                [sys.executable, str(_BUILD), *options, str(partial), *more],
                check=False,
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": path, **environment},
            )
            if made.returncode:
                last = (made.stderr.strip() or "it gives no reason").splitlines()[-1]
                raise MissingDependencyError(f"{_BUILD} made no jar: {last}")
            partial.replace(jar)
    except OSError as error:
        raise MissingDependencyError(f"{jar} cannot be written: {error.strerror}") from error


def command(bootstrap: str, group: Group) -> list[str]:
    """The command that runs all members of a group, after `make_jar`."""
    (topic,) = group.topics
    # A group that does not follow has the same assignor, but gets no plans.
    cluster = CLUSTER if group.follows else f"not-{CLUSTER}"
    properties = {
        "bootstrap.servers": bootstrap,
        "group.id": group.group_id,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": str(round(group.commit_s * 1000)),
        "lagwise.cluster": cluster,
        **group.properties,
    }
    return [
        str(find_java()),
        *("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *("-cp", os.pathsep.join(map(str, (_JAR, *resolve(KAFKA)))), "lagwise.demo.DemoMembers"),
        *(topic, ",".join(map(str, group.speeds))),
        *(f"{name}={value}" for name, value in properties.items()),
    ]


def _newest_source_s() -> float:
    sources = [_BUILD, *_BUILD.parent.rglob("*.java")]
    return max(source.stat().st_mtime for source in sources)
