"""The command for the jar of `deploy/java` as a process under trial; `Follower.java` beside it is all of its code."""

import os
from pathlib import Path

from pipeline.local.java import find_java
from tests.support.java.java_jar import JavaJar

_SOURCE = Path(__file__).with_name("java") / "Follower.java"
EAGER = "lagwise.follow.LagwiseAssignor"
COOPERATIVE = "lagwise.follow.LagwiseCooperativeAssignor"


def java_command(jar: JavaJar, assignor: str) -> list[str]:
    """What starts one member; Java compiles the source as it starts."""
    # A member has no need of more, and the machine none of them to spare.
    options = ["-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    return [str(find_java()), *options, "-cp", jar.class_path(), os.fspath(_SOURCE), assignor]
