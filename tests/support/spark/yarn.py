"""YARN with HDFS as its default file system: four servers of Hadoop on loopback, and one node for containers."""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from pipeline.local.embedded.config import free_ports
from tests.support.spark.hadoop import HOST, HadoopProcess, command, environment, write_settings
from tests.support.spark.spark_cluster import command_line, descendants
from tests.support.waiting import wait_until

_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_RESOURCE_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_FIRST_CONTAINERS = "container_*_000001"
_EXECUTOR = "YarnCoarseGrainedExecutorBackend"
# For all containers.
_NODE_SIZE = {
    "yarn.nodemanager.resource.memory-mb": 12 * 1024,
    "yarn.nodemanager.resource.cpu-vcores": 4,
}
_STARTED_WITHIN_S = 120.0
_ANSWER_WITHIN_S = 5.0


class Yarn:
    """A context manager; its processes, with all containers, end with the block.

    Attributes:
        conf: Folder for HADOOP_CONF_DIR.
    """

    def __init__(self, folder: Path) -> None:
        """Nothing is started.

        Args:
            folder: Everything that it writes is below.
        """
        self._folder = folder
        self.conf = folder / "conf"
        self._started: list[HadoopProcess] = []
        self._name_node_page, self._page = free_ports(2)

    def __enter__(self) -> "Yarn":
        self.conf.mkdir(parents=True)
        self._write_settings()
        try:
            self._format()
            for main in (_NAME_NODE, _DATA_NODE, _RESOURCE_MANAGER, _NODE_MANAGER):
                home = self._folder / main.rpartition(".")[2]
                self._started.append(HadoopProcess(home, self.conf, main))
            self.wait(self._is_ready, what="YARN and HDFS", within_s=_STARTED_WITHIN_S)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def applications(self) -> list["Application"]:
        """All of which a container has run, oldest first."""
        logs = self._folder / "NodeManager" / "logs" / "userlogs"
        folders = {first.parent for first in logs.glob(f"*/{_FIRST_CONTAINERS}")}
        return [Application(self, folder) for folder in sorted(folders)]

    def processes(self) -> list[int]:
        """Of all containers."""
        return descendants(self._started[-1].pid)

    def in_hdfs(self, folder: str) -> list[str]:
        """Names of what is in a folder there."""
        page = f"http://{HOST}:{self._name_node_page}"
        found = _answer(f"{page}/webhdfs/v1{folder}?op=LISTSTATUS")["FileStatuses"]["FileStatus"]
        return [one["pathSuffix"] for one in found]

    def ask(self, path: str, *, put: object = None) -> Any:
        """What the ResourceManager answers to a question, or to a wish."""
        request = urllib.request.Request(
            f"http://{HOST}:{self._page}/ws/v1/cluster/{path}?user.name=root",
            data=None if put is None else json.dumps(put).encode(),
            headers={"Content-Type": "application/json"},
            method="GET" if put is None else "PUT",
        )
        return _answer(request)

    def wait(self, condition: Callable[[], object], *, what: str, within_s: float) -> None:
        """As `wait_until`; a failure comes with the end of the servers' logs."""

        def holds() -> object:
            for process in self._started:
                process.assert_runs()
            return condition()

        try:
            wait_until(holds, what=what, within_s=within_s, every_s=0.25)
        except AssertionError as error:
            raise AssertionError("\n".join((str(error), *(one.log for one in self._started)))) from None

    def _is_ready(self) -> bool:
        try:
            bean = "Hadoop:service=NameNode,name=FSNamesystemState"
            state = _answer(f"http://{HOST}:{self._name_node_page}/jmx?qry={bean}")["beans"]
            # Null, or an empty text, before the first one has registered.
            nodes = (self.ask("nodes")["nodes"] or {}).get("node", [])
        except OSError:
            return False
        has_data_node = any(one["NumLiveDataNodes"] and one["FSState"] == "Operational" for one in state)
        return has_data_node and any(one["state"] == "RUNNING" for one in nodes)

    def _format(self) -> None:
        home = self._folder / "NameNode"
        home.mkdir()
        done = subprocess.run(
            [*command(home, self.conf, _NAME_NODE), "-format", "-nonInteractive"],
            env=environment(home, self.conf),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _write_settings(self) -> None:
        files, *ports = free_ports(5)
        names = ("", ".scheduler", ".resource-tracker", ".admin")
        manager = {
            f"yarn.resourcemanager{name}.address": f"{HOST}:{port}"
            for name, port in zip(names, ports, strict=True)
        }
        pages = "nodemanager.webapp", "nodemanager.localizer", "nodemanager.collector-service"
        node = {f"yarn.{name}.address": f"{HOST}:0" for name in ("nodemanager", *pages)}
        data_node = {f"dfs.datanode{name}.address": f"{HOST}:0" for name in ("", ".http", ".ipc")}
        core = {"fs.defaultFS": f"hdfs://{HOST}:{files}", "hadoop.tmp.dir": self._folder / "tmp"}
        write_settings(self.conf / "core-site.xml", core)
        http = {"dfs.namenode.http-address": f"{HOST}:{self._name_node_page}", "dfs.replication": 1}
        write_settings(self.conf / "hdfs-site.xml", data_node | http)
        yarn = manager | {"yarn.resourcemanager.webapp.address": f"{HOST}:{self._page}"} | node | _NODE_SIZE
        disk = "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage"
        whitelist = {"yarn.nodemanager.env-whitelist": "JAVA_HOME,SPARK_LOCAL_IP"}
        write_settings(self.conf / "yarn-site.xml", {**yarn, **whitelist, disk: 100})
        queues = {"root.queues": "default", "root.default.capacity": 100, "maximum-am-resource-percent": 1}
        write_settings(
            self.conf / "capacity-scheduler.xml",
            {f"yarn.scheduler.capacity.{name}": value for name, value in queues.items()},
        )

    def _end(self) -> None:
        left = [pid for one in self._started[-1:] for pid in descendants(one.pid)]
        for process in self._started:
            process.tell_to_end()
        for process in self._started:
            process.end()
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Application:
    """One of which YARN has started a container.

    Attributes:
        name: As YARN has it.
    """

    def __init__(self, yarn: Yarn, logs: Path) -> None:
        self._yarn, self._logs = yarn, logs
        self.name = logs.name

    @property
    def has_ended(self) -> bool:
        """Whether nothing more becomes of it."""
        return self._yarn.ask(f"apps/{self.name}/state")["state"] in ("FINISHED", "FAILED", "KILLED")

    @property
    def attempts(self) -> int:
        """How many have begun."""
        return len(self._masters())

    @property
    def log(self) -> str:
        """Of the driver of cluster mode, in the newest attempt."""
        file = self._masters()[-1] / "stdout"
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    @property
    def logs(self) -> str:
        """The end of all that its containers have said."""
        files = sorted(self._logs.rglob("std*"))
        return "\n".join(f"== {file}\n{file.read_text(encoding='utf-8')[-4000:]}" for file in files)

    def kill(self) -> None:
        """As `yarn application -kill`."""
        self._yarn.ask(f"apps/{self.name}/state", put={"state": "KILLED"})

    def master(self) -> int:
        """Process id of the Java of the newest attempt's first container."""
        (found,) = self._java(self._masters()[-1].name)
        return found

    def executors(self) -> list[int]:
        """Process ids of their Java."""
        return [pid for pid in self._java(self.name) if _EXECUTOR in command_line(pid)]

    def _java(self, of: str) -> list[int]:
        lines = {pid: command_line(pid) for pid in self._yarn.processes()}
        return [pid for pid, line in lines.items() if line.partition(" ")[0].endswith("/java") and of in line]

    def _masters(self) -> list[Path]:
        """Logs of the first container of each attempt."""
        return sorted(self._logs.glob(_FIRST_CONTAINERS))


def _answer(question: str | urllib.request.Request) -> Any:
    with urllib.request.urlopen(question, timeout=_ANSWER_WITHIN_S) as answer:  # noqa: S310 - http on loopback
        return json.load(answer)
