"""Groups whose members are in Java: the jar they need, and the command of their process."""

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
    """Make the jar of a Java group as `make java` makes its own, unless there is a newer one than its sources.

    Raises:
        MissingDependencyError: A JDK, its sources, or what they are compiled against; the message is one line.
    """
    if not _BUILD.is_file():
        raise MissingDependencyError(f"there is no {_BUILD}: run it in a clone of the source")
    # Also where the jar is there: one rule for whether there is a Java group.
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
        last = (made.stderr.strip() or "it does not say why").splitlines()[-1]
        raise MissingDependencyError(f"{_BUILD} made no jar: {last}")


def command(bootstrap: str, group: Group) -> list[str]:
    """What runs all members of a group, once `make_jar` has returned."""
    (topic,) = group.topics
    # One that does not follow has the same assignor, and differs in nothing but that there are no plans for it.
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
