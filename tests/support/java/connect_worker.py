"""A standalone worker of Kafka Connect with a sink, and the companion of its tasks."""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Literal

from pipeline.local.jars import resolve
from pipeline.local.java import find_java
from tests.support.followers.plugin_setup import PluginSetup
from tests.support.java.java_apps import JavaApp
from tests.support.java.java_jar import LOGGER, NEWEST, java_jar
from tests.support.java.java_members import JavaHost, JavaMember, properties
from tests.support.waiting import wait_until

CONNECT = tuple(f"org.apache.kafka:connect-{name}:{NEWEST}" for name in ("runtime", "file"))
TASKS = 3
LEVELS = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients.consumer.internals=info",
)


def group_of(setup: PluginSetup) -> str:
    """As Connect calls the group of a connector with the name of the setup."""
    return f"connect-{setup.name}"


@contextmanager
def worker(
    setup: PluginSetup,
    folder: Path,
    assignor: str | None,
    *,
    port: int = 0,
) -> Iterator[JavaApp]:
    """A standalone worker whose sink writes into the file `sink`; the jar lies in the folder of its plugin.

    Args:
        setup: Topics of the test.
        folder: For all files.
        assignor: Of the tasks; Connect's own without one.
        port: Of the worker's interface.
    """
    jars = resolve((*CONNECT, LOGGER))
    plugin = folder / "plugins/file"
    plugin.mkdir(parents=True)
    (of_sink,) = (jar for jar in jars if jar.name.startswith("connect-file-"))
    shutil.copy(of_sink, plugin)
    shutil.copy(java_jar().file, plugin)
    of_worker = {
        "bootstrap.servers": setup.bootstrap,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "offset.storage.file.filename": folder / "offsets",
        "offset.flush.interval.ms": 1000,
        "plugin.path": plugin.parent,
        "plugin.discovery": "service_load",
        "listeners": f"http://127.0.0.1:{port}",
        "connector.client.config.override.policy": "All",
    }
    of_connector = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "tasks.max": TASKS,
        "topics": setup.name,
        "file": folder / "sink",
        # Lines that say where a record was.
        "transforms": "hoist,insert",
        "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.hoist.field": "value",
        "transforms.insert.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.insert.partition.field": "partition",
        "transforms.insert.offset.field": "offset",
        "consumer.override.auto.offset.reset": "earliest",
        "consumer.override.heartbeat.interval.ms": 300,
        **(_following(setup, assignor) if assignor is not None else {}),
    }
    config = {name: str(value) for name, value in of_connector.items()}
    connector = folder / "connector.json"
    connector.write_text(json.dumps({"name": setup.name, "config": config}), encoding="utf-8")
    files = [written(folder / "worker", of_worker), connector]
    path = os.pathsep.join(str(jar) for jar in jars if jar != of_sink)
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    with JavaApp([str(find_java()), "-Xmx256m", *LEVELS, "-cp", path, main, *map(str, files)]) as app:
        yield app


def _following(setup: PluginSetup, assignor: str) -> dict[str, str]:
    return {
        "consumer.override.partition.assignment.strategy": assignor,
        "consumer.override.lagwise.control.topic": setup.control,
        "consumer.override.lagwise.acks.topic": setup.acks,
    }


def told(setup: PluginSetup, port: int, state: Literal["pause", "resume"]) -> None:
    """Return when all tasks of the connector are paused, or run again. A paused task stays a member that reads nothing."""
    _asked(port, "PUT", f"/connectors/{setup.name}/{state}", expected=HTTPStatus.ACCEPTED)
    wanted = {"pause": "PAUSED", "resume": "RUNNING"}[state]

    def is_done() -> bool:
        said = _asked(port, "GET", f"/connectors/{setup.name}/status", expected=HTTPStatus.OK)
        return [task["state"] for task in said["tasks"]] == [wanted] * TASKS

    wait_until(is_done, what=f"tasks that are {wanted}")


def _asked(port: int, method: str, path: str, *, expected: HTTPStatus) -> Any:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        assert answer.status == expected
        text = answer.read()
        return json.loads(text) if text else None
    finally:
        connection.close()


def written(file: Path, options: dict[str, object]) -> Path:
    file.write_text("".join(f"{name}={value}\n" for name, value in options.items()), encoding="utf-8")
    return file


def companion(host: JavaHost, setup: PluginSetup, assignor: str) -> JavaMember:
    """A member of the group of the tasks that reads the control topic and nothing of theirs."""
    topics = {"lagwise_control_topic": setup.control, "lagwise_acks_topic": setup.acks}
    config = properties(setup.bootstrap, group_of(setup), [assignor], lagwise_cluster="", **topics)
    return JavaMember(host, config, [setup.control])


def sunk(file: Path) -> Counter[tuple[int, int]]:
    """Partition and offset of each record in it."""
    lines = re.findall(r"partition=(\d+),offset=(\d+)\}\n", file.read_text(encoding="utf-8"))
    return Counter((int(partition), int(offset)) for partition, offset in lines)
