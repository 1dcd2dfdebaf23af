"""Processes of Hadoop 3.5.0 on loopback, each in a folder of its own, with nothing of this project on its path.

They are of the jar that Hadoop makes for tests of clusters (`hadoop-client-minicluster`: the classes of its servers) and
of what pyspark ships: 42 MB to fetch once, where the servers' own artifacts are 142 files and take minutes.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from pipeline.local import watchdog
from pipeline.local.jars import pyspark_jars, resolve_for_spark
from pipeline.local.java import find_java

HOST = "127.0.0.1"

_VERSION = "3.5.0"
_JARS = (
    f"org.apache.hadoop:hadoop-client-minicluster:{_VERSION}",
    # What the two pages of YARN take beside it, and neither it nor pyspark brings.
    "org.bouncycastle:bcpkix-jdk18on:1.80",
    "javax.xml.bind:jaxb-api:2.2.11",
)
_JAVA = (
    *("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    # Guice 4, of which the pages are made, defines classes in a way that Java 17 does not allow unasked.
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "-Dlog4j2.level=WARN",
)
_STOPPED_WITHIN_S = 5
_LOG_LINES = 40


class HadoopProcess:
    """A server, from its start to `end`; it does not outlive the process that has started it.

    Attributes:
        pid: Of its Java.
    """

    def __init__(self, home: Path, conf: Path, main: str) -> None:
        """Start it.

        Args:
            home: Where it runs, and logs.
            conf: Folder of its settings.
            main: Its class.
        """
        self._name = main.rpartition(".")[2]
        self._log = home / "log"
        home.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._watchdog = subprocess.Popen(
                [
                    sys.executable,
                    "-IS",
                    watchdog.__file__,
                    str(_STOPPED_WITHIN_S),
                    *command(home, conf, main),
                ],
                cwd=home,
                env=environment(home, conf),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._watchdog.stdout is not None
        self.pid = int(self._watchdog.stdout.readline())

    @property
    def log(self) -> str:
        """The end of what it has said."""
        lines = self._log.read_text(encoding="utf-8").splitlines()[-_LOG_LINES:]
        return "\n".join((f"== {self._name}, {self._log}", *lines))

    def assert_runs(self) -> None:
        """Nothing, or the end of its log."""
        assert self._watchdog.poll() is None, f"{self._name} has ended:\n{self.log}"

    def tell_to_end(self) -> None:
        """SIGTERM, and SIGKILL if it takes too long; return at once."""
        if self._watchdog.stdin:
            self._watchdog.stdin.close()

    def end(self) -> None:
        """Return when it has ended."""
        with self._watchdog:
            self.tell_to_end()


def command(home: Path, conf: Path, main: str) -> list[str]:
    """The command line of a class of Hadoop."""
    class_path = ":".join(map(str, (conf, *resolve_for_spark(_JARS), pyspark_jars() / "*")))
    logs = [f"-D{name}.log.dir={home / 'logs'}" for name in ("hadoop", "yarn")]
    return [str(find_java()), *_JAVA, *logs, "-cp", class_path, main]


def environment(home: Path, conf: Path) -> dict[str, str]:
    """All variables that a process has."""
    return {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "JAVA_HOME": str(find_java().resolve().parents[1]),
        "HADOOP_CONF_DIR": str(conf),
        # For what runs in containers, whatever this machine is called.
        "SPARK_LOCAL_IP": HOST,
    }


def write_settings(file: Path, settings: Mapping[str, object]) -> None:
    """A file in the form that Hadoop reads."""
    rows = (
        f"<property><name>{name}</name><value>{escape(str(value))}</value></property>\n"
        for name, value in settings.items()
    )
    file.write_text(f"<configuration>\n{''.join(rows)}</configuration>\n", encoding="utf-8")
