"""One Kafka node in a folder of its own: a Java process next to this one.

    <data_dir>/server.properties  log4j2.properties   written at every start
    <data_dir>/server.log                             Kafka's log, at most three files of 10 MB
    <data_dir>/java.log                               output of Java itself
    <data_dir>/kafka/                                 the node's data

A watchdog process between the two makes sure that no node outlives the process that started it.
"""

import base64
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pipeline.errors import BrokerUnavailableError
from pipeline.local import class_data, watchdog
from pipeline.local.embedded.config import KAFKA, LOG4J2, properties_text
from pipeline.local.jars import resolve
from pipeline.local.java import find_java

_READY_WITHIN_S = 90.0
_STOPPED_WITHIN_S = 15.0
# A connection on loopback, or a line of the log: a look is cheap, and tests wait for every start.
_LOOK_EVERY_S = 0.05
_LOG_LINES_IN_ERROR = 15
_PORT_TAKEN = re.compile(r"Address already in use|BindException|Socket server failed to bind")


class PortTakenError(BrokerUnavailableError):
    """Another process took the port before the node could listen on it."""


class KafkaNode(ABC):
    """The process of one node, which can be stopped, killed, paused and started again on the same data.

    Attributes:
        data_dir: Folder of everything that the node writes.
    """

    def __init__(
        self,
        *,
        name: str,
        data_dir: Path,
        heap_mb: int,
        report: Callable[[str], None] | None,
        archive: Path | None = None,
        class_path: Sequence[Path] = (),
    ) -> None:
        """Prepare the node without starting it.

        Args:
            name: Its name in error messages.
            data_dir: Folder of this node, whose data an earlier node may have written.
            heap_mb: Maximum heap of the Java process.
            report: Called with a line about each download.
            archive: File for a class data archive, which the node writes when it exits; by default it uses an
                existing archive.
            class_path: Jars in addition to Kafka's.
        """
        self.data_dir = data_dir
        self._name = name
        self._heap_mb = heap_mb
        self._report = report
        self._archive = archive
        self._class_path = tuple(class_path)
        self._watchdog: subprocess.Popen[str] | None = None
        self._pid: int | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the Java process; None while it is not running."""
        return self._pid if self._watchdog is not None and self._watchdog.poll() is None else None

    @property
    def cluster_id(self) -> str:
        """Kafka's id of the cluster in this folder, which formatting has set.

        Raises:
            BrokerUnavailableError: The folder holds no cluster yet.
        """
        try:
            text = self._meta_properties.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise BrokerUnavailableError(f"{self.data_dir} holds no Kafka cluster yet") from error
        return text.partition("cluster.id=")[2].partition("\n")[0].strip()

    @abstractmethod
    def start(self) -> None:
        """Start the node, and return when it is ready; at once if it is running.

        Raises:
            BrokerUnavailableError: It exited, or was not ready in time; the message has its last log lines.
            MissingDependencyError: There is no Java, or a jar cannot be downloaded.
        """

    def stop(self) -> None:
        """Stop it as an operator would: SIGTERM, then SIGKILL if it takes too long. Data and port stay."""
        if self._watchdog is None:
            return
        with self._watchdog as process:
            if process.stdin:
                process.stdin.close()
            process.wait()
        self._watchdog = None

    def restart(self) -> None:
        """Stop and start on the same data and port."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """Stop it as a power cut would: SIGKILL."""
        self._signal(signal.SIGKILL)
        self.stop()

    def pause(self) -> None:
        """Freeze it: connections stay open, and it does not answer."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue it after `pause`."""
        self._signal(signal.SIGCONT)

    def _prepare(self, properties: Mapping[str, str], *, cluster_id: str) -> None:
        """Write its configuration; a new folder becomes part of the cluster with this id."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._properties_file.write_text(properties_text(properties), encoding="utf-8")
        self._log4j2.write_text(LOG4J2.format(directory=self.data_dir), encoding="utf-8")
        if not self._meta_properties.is_file():
            self._format(cluster_id)

    def _launch(self) -> None:
        """Start the prepared process without waiting until it is ready."""
        command = [
            *(*self._java(archive=self._archive), f"-Dlog4j2.configurationFile={self._log4j2}"),
            *("kafka.Kafka", str(self._properties_file)),
        ]
        # Lines of an earlier run would be mistaken for lines of this one.
        (self.data_dir / "server.log").unlink(missing_ok=True)
        with (self.data_dir / "java.log").open("w", encoding="utf-8") as output:
            self._watchdog = subprocess.Popen(
                [sys.executable, "-IS", watchdog.__file__, str(_STOPPED_WITHIN_S), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                # Ctrl-C signals the whole foreground group; the node ends when its owner stops it.
                start_new_session=True,
            )
        first_line = self._watchdog.stdout.readline() if self._watchdog.stdout else ""
        if not first_line:
            self.stop()
            raise self._failure("could not be started")
        self._pid = int(first_line)

    def _wait_until(self, is_up: Callable[[], bool]) -> None:
        """Return when it is up; stop it if it is not in time."""
        try:
            self._watch(is_up, time.monotonic() + _READY_WITHIN_S)
        except BaseException:
            self.stop()
            raise

    def _watch(self, is_up: Callable[[], bool], deadline: float) -> None:
        while not is_up():
            if self.pid is None:
                raise self._failure("ended while starting")
            if time.monotonic() > deadline:
                raise self._failure(f"was not ready within {_READY_WITHIN_S:.0f} s")
            time.sleep(_LOOK_EVERY_S)

    @property
    def _meta_properties(self) -> Path:
        return self.data_dir / "kafka" / "meta.properties"

    @property
    def _properties_file(self) -> Path:
        return self.data_dir / "server.properties"

    @property
    def _log4j2(self) -> Path:
        return self.data_dir / "log4j2.properties"

    def _java(self, *, archive: Path | None = None) -> list[str]:
        jars = resolve(KAFKA, report=self._report)
        shared = class_data.make(archive) if archive else class_data.use(class_data.archive("kafka", jars))
        # Last, since an archive is used with any class path that begins with its own.
        class_path = os.pathsep.join(map(str, (*jars, *self._class_path)))
        return [str(find_java()), f"-Xmx{self._heap_mb}m", "-XX:+UseSerialGC", *shared, "-cp", class_path]

    def _format(self, cluster_id: str) -> None:
        command = ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._properties_file)]
        done = subprocess.run([*self._java(), *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrokerUnavailableError(f"cannot format {self.data_dir}: {done.stdout}{done.stderr}")

    def _signal(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is None:
            raise BrokerUnavailableError(f"{self._name} is not running")
        os.kill(pid, number)

    def _log(self) -> str:
        """Log lines of Kafka and Java since the last start."""
        files = (self.data_dir / "server.log", self.data_dir / "java.log")
        return "\n".join(file.read_text(encoding="utf-8").rstrip() for file in files if file.is_file())

    def _failure(self, what: str) -> BrokerUnavailableError:
        log = self._log()
        kind = PortTakenError if _PORT_TAKEN.search(log) else BrokerUnavailableError
        last = "\n".join(log.splitlines()[-_LOG_LINES_IN_ERROR:])
        return kind(f"{self._name} {what}; its last log lines in {self.data_dir}:\n{last}")


def new_cluster_id() -> str:
    """A random cluster id in Kafka's form."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "_")
