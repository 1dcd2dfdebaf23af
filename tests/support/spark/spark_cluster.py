"""A standalone Spark cluster of pyspark's own jars: a master and workers, processes on loopback.

Each worker is like a host of its own: a home, a working folder and a short PATH, and nothing of this project on its
path. What an executor has, it was sent, or stands in `variables`.
"""

import json
import os
import signal
import subprocess
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pyspark

from pipeline.local.embedded.config import free_ports
from pipeline.local.java import find_java
from tests.support.waiting import wait_until

_SPARK_HOME = Path(pyspark.__file__).parent
_JARS = f"{_SPARK_HOME}/jars/*"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_EXECUTOR = "CoarseGrainedExecutorBackend"
_HOST = "127.0.0.1"
_STARTED_WITHIN_S = 90.0
_ENDED_WITHIN_S = 30.0
_SMALL = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class SparkCluster:
    """A context manager; its processes, with the executors, end with the block."""

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 2,
        cores: int = 1,
        memory: str = "1g",
    ) -> None:
        """Nothing is started.

        Args:
            folder: Everything that it writes is below.
            workers: How many.
            cores: Of each.
            memory: Of each, for its executors.
        """
        self.folder = folder
        self._count = workers
        self._size = ("--cores", str(cores), "--memory", memory)
        self._port, self._web_port = free_ports(2)
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """For --master."""
        return f"spark://{_HOST}:{self._port}"

    @property
    def page_port(self) -> int:
        """Of the master's page."""
        return self._web_port

    def __enter__(self) -> "SparkCluster":
        try:
            own = ("--host", _HOST, "--port", str(self._port), "--webui-port", str(self._web_port))
            self._master = self._start("master", _MASTER, *own)
            wait_until(self.state, what="the master of Spark", within_s=_STARTED_WITHIN_S)
            for number in range(self._count):
                self.start_worker(number)
            self.wait_for_workers(self._count)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def start_worker(self, number: int) -> None:
        """Start a worker, or start it again; return at once."""
        home = self.folder / f"worker-{number}"
        own = ("--host", _HOST, "--webui-port", "0", "--work-dir", str(home / "work"), *self._size)
        self._workers[number] = self._start(f"worker-{number}", _WORKER, *own, self.url)

    def kill_worker(self, number: int) -> None:
        """SIGKILL to a worker; its executors see it and end."""
        self._workers[number].kill()
        self._workers[number].wait(_ENDED_WITHIN_S)

    def wait_for_workers(self, count: int) -> None:
        """Return when so many are registered and alive."""

        def alive() -> bool:
            workers = (self.state() or {}).get("workers", [])
            return sum(one["state"] == "ALIVE" for one in workers) == count

        wait_until(alive, what=f"{count} workers of Spark", within_s=_STARTED_WITHIN_S)

    def state(self) -> dict[str, Any] | None:
        """What the master says; None when it does not answer yet."""
        try:
            with urllib.request.urlopen(f"http://{_HOST}:{self._web_port}/json/", timeout=5) as answer:
                state: dict[str, Any] = json.load(answer)
                return state
        except (OSError, ValueError):
            # Before it knows this path, its page answers with itself.
            return None

    def executors(self, number: int | None = None) -> list[int]:
        """Process ids of the executors of one worker, or of all."""
        parents = [worker.pid for each, worker in self._workers.items() if number is None or each == number]
        return [pid for parent in parents for pid in children(parent) if _EXECUTOR in command_line(pid)]

    def busy_executors(self) -> list[int]:
        """Those that have a Python at work."""
        return [
            pid for pid in self.executors() if any("daemon" in command_line(one) for one in children(pid))
        ]

    def kill_executor(self, pid: int) -> None:
        """SIGKILL to the JVM of an executor and to its Python."""
        for one in (pid, *descendants(pid)):
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)

    def logs(self) -> str:
        """What all processes have written to stderr, for a failed test's message."""
        files = sorted(self.folder.rglob("stderr"))
        return "\n".join(f"== {file}\n{file.read_text(encoding='utf-8')[-4000:]}" for file in files)

    def _start(self, name: str, *command: str) -> "subprocess.Popen[bytes]":
        home = self.folder / name
        home.mkdir(parents=True, exist_ok=True)
        environment = {
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "SPARK_HOME": str(_SPARK_HOME),
            # As Spark's own scripts set it.
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_IP": _HOST,
        }
        with (home / "stderr").open("ab") as log:
            return subprocess.Popen(
                [str(find_java()), *_SMALL, "-cp", _JARS, *command],
                cwd=home,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _end(self) -> None:
        for process in (*self._workers.values(), *([self._master] if self._master else [])):
            left = descendants(process.pid)
            process.kill()
            process.wait(_ENDED_WITHIN_S)
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """Processes that this one has started."""
    found: list[int] = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, tasks.read_text(encoding="utf-8").split())
        except OSError:
            continue
    return found


def descendants(pid: int) -> list[int]:
    """Processes that this one has started, and theirs."""
    return [one for child in children(pid) for one in (child, *descendants(child))]


def command_line(pid: int) -> str:
    """Of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
