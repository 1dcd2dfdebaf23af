"""Groups with members in Java: their jar, and the command of their process."""

import os
import subprocess
import sys
from pathlib import Path

from pipeline.errors import MissingDependencyError
from pipeline.local.embedded.config import KAFKA
from pipeline.local.jars import resolve
from pipeline.local.java import find_java, find_tool
from pipeline.operate.demo.scenario import CLUSTER, Group

_ROOT = Path(__file__).parents[4]
_BUILD = _ROOT / "deploy" / "java" / "build.py"
_MEMBERS = _ROOT / "deploy" / "java" / "demo"
_JAR = _ROOT / "build" / "lagwise-demo.jar"


def make_jar() -> None:
    """Build the jar of a Java group like `make java`, unless it is newer than its sources.

    Raises:
        MissingDependencyError: A JDK, the sources or their dependencies are missing; the message is one line.
    """
    if not _BUILD.is_file():
        raise MissingDependencyError(f"there is no {_BUILD}: run it in a clone of the source")
    # Even if the jar exists: one rule for whether there is a Java group.
    find_tool("javac")
    if _JAR.is_file() and _JAR.stat().st_mtime > _newest_source_s():
        return
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    made = subprocess.run(
        [sys.executable, str(_BUILD), str(_JAR), str(_MEMBERS)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    if made.returncode:
        last = (made.stderr.strip() or "it gives no reason").splitlines()[-1]
        raise MissingDependencyError(f"{_BUILD} made no jar: {last}")


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
