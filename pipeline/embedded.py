"""A real Kafka in a folder of its own: one KRaft node, started as a Java process beside this one.

    <data_dir>/server.properties  log4j2.properties   written at every start
    <data_dir>/server.log                             Kafka's log, at most three files of 10 MB
    <data_dir>/java.log                               what Java itself prints
    <data_dir>/kafka/                                 the node's data

A watchdog process stands between the two, so that no broker outlives the process that started it.
"""

import base64
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from pipeline import watchdog
from pipeline.artifacts import resolve
from pipeline.embedded_config import HOST, LOG4J2, free_port, properties_text, server_properties
from pipeline.errors import BrokerUnavailableError
from pipeline.java import find_java

KAFKA = ("org.apache.kafka:kafka_2.13:4.2.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3")

_READY_WITHIN_S = 90.0
_STOPPED_WITHIN_S = 15.0
_LOOK_EVERY_S = 0.05
_PORT_ATTEMPTS = 3
_LOG_LINES_IN_ERROR = 15
_PORT_TAKEN = re.compile(r"Address already in use|BindException|Socket server failed to bind")


@final
class EmbeddedBroker:
    """One Kafka 4.2 broker on loopback; a context manager.

    Attributes:
        data_dir: Everything the broker writes.
    """

    def __init__(
        self,
        *,
        data_dir: Path | None = None,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        heap_mb: int = 512,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Prepare, start nothing.

        Args:
            data_dir: Folder to keep; a broker that was there before goes on with its data. Without it a
                temporary one is removed on leaving.
            port: Port of the broker; without it a free one is chosen at the first start and kept.
            properties: Server properties that go before those of `server_properties`.
            heap_mb: Largest heap of the Java process.
            report: Told what is downloaded, the first time ever.
        """
        self.data_dir = (data_dir or Path(tempfile.mkdtemp(prefix="lagwise-broker-"))).resolve()
        self._temporary = data_dir is None
        self._port = port
        self._properties = dict(properties or {})
        self._heap_mb = heap_mb
        self._report = report
        self._watchdog: subprocess.Popen[str] | None = None
        self._pid: int | None = None

    def __enter__(self) -> "EmbeddedBroker":
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, the same through restarts.

        Raises:
            BrokerUnavailableError: No port was chosen yet, since it never started.
        """
        if self._port is None:
            raise BrokerUnavailableError("the embedded broker was not started yet")
        return f"{HOST}:{self._port}"

    @property
    def pid(self) -> int | None:
        """Process id of the Java process; null while it does not run."""
        return self._pid if self._watchdog is not None and self._watchdog.poll() is None else None

    @property
    def cluster_id(self) -> str:
        """Kafka's id of the cluster in this folder, given when it was formatted.

        Raises:
            BrokerUnavailableError: The folder holds no cluster yet.
        """
        try:
            text = (self.data_dir / "kafka" / "meta.properties").read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise BrokerUnavailableError(f"{self.data_dir} holds no Kafka cluster yet") from error
        return text.partition("cluster.id=")[2].partition("\n")[0].strip()

    def start(self) -> None:
        """Start and return when clients can use it; at once when it runs already.

        Raises:
            BrokerUnavailableError: It ended, or was not ready in time; the message has its last log lines.
            MissingDependencyError: No Java, or its jars cannot be had.
        """
        if self.pid is not None:
            return
        self.stop()
        attempts = _PORT_ATTEMPTS if self._port is None else 1
        while True:
            attempts -= 1
            port = self._port or free_port()
            try:
                self._start_on(port)
            except _PortTakenError:
                if attempts:
                    continue
                raise
            self._port = port
            return

    def stop(self) -> None:
        """End it as an operator would: SIGTERM, then SIGKILL if it takes too long. Data and port stay."""
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
        """End it as a power cut would: SIGKILL."""
        self._signal(signal.SIGKILL)
        self.stop()

    def pause(self) -> None:
        """Freeze it: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Stop, and remove the folder if it was a temporary one."""
        self.stop()
        if self._temporary:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    @property
    def _log4j2(self) -> Path:
        return self.data_dir / "log4j2.properties"

    def _signal(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is None:
            raise BrokerUnavailableError("the embedded broker does not run")
        os.kill(pid, number)

    def _start_on(self, port: int) -> None:
        jars = os.pathsep.join(map(str, resolve(KAFKA, report=self._report)))
        java = [str(find_java()), f"-Xmx{self._heap_mb}m", "-XX:+UseSerialGC", "-cp", jars]
        properties_file = self._write_files(port)
        if not (self.data_dir / "kafka" / "meta.properties").is_file():
            self._format(java, properties_file)
        self._launch(
            [*java, f"-Dlog4j2.configurationFile={self._log4j2}", "kafka.Kafka", str(properties_file)]
        )
        try:
            self._wait_until_ready(port, time.monotonic() + _READY_WITHIN_S)
        except BaseException:
            self.stop()
            raise

    def _launch(self, command: list[str]) -> None:
        # Lines of an earlier run would be taken for this one's.
        (self.data_dir / "server.log").unlink(missing_ok=True)
        with (self.data_dir / "java.log").open("w", encoding="utf-8") as output:
            self._watchdog = subprocess.Popen(
                [sys.executable, "-IS", watchdog.__file__, str(_STOPPED_WITHIN_S), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                # Ctrl-C goes to the whole foreground group; the broker ends when its owner says so.
                start_new_session=True,
            )
        first_line = self._watchdog.stdout.readline() if self._watchdog.stdout else ""
        if not first_line:
            self.stop()
            raise self._failure("could not be started")
        self._pid = int(first_line)

    def _write_files(self, port: int) -> Path:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        properties = server_properties(
            data_dir=self.data_dir,
            port=port,
            controller_port=free_port(avoid=frozenset({port})),
            overrides=self._properties,
        )
        file = self.data_dir / "server.properties"
        file.write_text(properties_text(properties), encoding="utf-8")
        self._log4j2.write_text(LOG4J2.format(directory=self.data_dir), encoding="utf-8")
        return file

    def _format(self, java: list[str], properties_file: Path) -> None:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "_")
        command = ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties_file)]
        done = subprocess.run([*java, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrokerUnavailableError(f"cannot format {self.data_dir}: {done.stdout}{done.stderr}")

    def _wait_until_ready(self, port: int, deadline: float) -> None:
        admin: AdminClient | None = None
        while time.monotonic() < deadline:
            if self.pid is None:
                raise self._failure("ended while starting")
            if admin is None and _accepts(port):
                admin = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0})
            if admin is not None and _is_up(admin, self.cluster_id):
                return
            time.sleep(_LOOK_EVERY_S)
        raise self._failure(f"was not ready within {_READY_WITHIN_S:.0f} s")

    def _failure(self, what: str) -> BrokerUnavailableError:
        files = (self.data_dir / "server.log", self.data_dir / "java.log")
        lines = [line for file in files if file.is_file() for line in file.read_text().splitlines()]
        kind = _PortTakenError if _PORT_TAKEN.search("\n".join(lines)) else BrokerUnavailableError
        last = "\n".join(lines[-_LOG_LINES_IN_ERROR:])
        return kind(f"the embedded broker {what}; its last log lines in {self.data_dir}:\n{last}")


class _PortTakenError(BrokerUnavailableError):
    """Somebody took the port between choosing and listening."""


def _accepts(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def _is_up(admin: AdminClient, cluster_id: str) -> bool:
    """Whether this very cluster answers: another process may listen on the port."""
    try:
        cluster = admin.describe_cluster(request_timeout=1.0).result()
    except KafkaException:
        return False
    return bool(cluster.nodes) and cluster.cluster_id == cluster_id
