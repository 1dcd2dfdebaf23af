"""Sink tasks of a Kafka Connect worker that follow, with a member beside them that makes their group rebalance."""

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from assignor.protocol.acks import Applied, Refused
from pipeline.local.jars import resolve
from pipeline.local.java import find_java
from tests.support.brokers.broker import admin_client
from tests.support.brokers.flow import Flow
from tests.support.followers.plugin_setup import PARTITIONS, RECORDS, PluginSetup, all_to_one
from tests.support.java.java_apps import JavaApp, owned, settled
from tests.support.java.java_jar import LOGGER, NEWEST, java_jar
from tests.support.java.java_members import COOPERATIVE, EAGER, JavaHost, JavaMember, properties
from tests.support.waiting import wait_until

CONNECT = tuple(f"org.apache.kafka:connect-{name}:{NEWEST}" for name in ("runtime", "file"))
GROUP = "connect-sink"
"""As Connect calls the group of a connector with the name sink."""
TASKS = 3
LEVELS = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients.consumer.internals=info",
)


@contextmanager
def worker(setup: PluginSetup, folder: Path, assignor: str) -> Iterator[JavaApp]:
    """A standalone worker whose sink writes into the file `sink`; the jar lies in the folder of its plugin."""
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
        "plugin.path": plugin.parent,
        "plugin.discovery": "service_load",
        "listeners": "http://127.0.0.1:0",
        "connector.client.config.override.policy": "All",
    }
    of_connector = {
        "name": GROUP.removeprefix("connect-"),
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
        "consumer.override.partition.assignment.strategy": assignor,
        "consumer.override.auto.offset.reset": "earliest",
        "consumer.override.heartbeat.interval.ms": 300,
        "consumer.override.lagwise.control.topic": setup.control,
        "consumer.override.lagwise.acks.topic": setup.acks,
    }
    files = [written(folder / "worker", of_worker), written(folder / "connector", of_connector)]
    path = os.pathsep.join(str(jar) for jar in jars if jar != of_sink)
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    with JavaApp([str(find_java()), "-Xmx256m", *LEVELS, "-cp", path, main, *map(str, files)]) as app:
        yield app


def written(file: Path, options: dict[str, object]) -> Path:
    file.write_text("".join(f"{name}={value}\n" for name, value in options.items()), encoding="utf-8")
    return file


def companion(host: JavaHost, setup: PluginSetup, assignor: str) -> JavaMember:
    """A member of the group of the tasks that reads the control topic and nothing of theirs."""
    topics = {"lagwise_control_topic": setup.control, "lagwise_acks_topic": setup.acks}
    config = properties(setup.bootstrap, GROUP, [assignor], lagwise_cluster="", **topics)
    return JavaMember(host, config, [setup.control])


def sunk(file: Path) -> Counter[tuple[int, int]]:
    """Partition and offset of each record in it."""
    lines = re.findall(r"partition=(\d+),offset=(\d+)\}\n", file.read_text(encoding="utf-8"))
    return Counter((int(partition), int(offset)) for partition, offset in lines)


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])
def test_sink_tasks_apply_plans_with_a_companion_and_sink_each_record_once(
    setup: PluginSetup, tmp_path: Path, assignor: str
) -> None:
    cluster = admin_client(setup.bootstrap).list_topics(timeout=10).cluster_id
    places = [*setup.places, (setup.control, 0)]
    flow = Flow(setup.bootstrap, setup.name, partitions=PARTITIONS, records_per_s=20)
    with worker(setup, tmp_path, assignor) as app, JavaHost(java_jar()) as host:
        beside = companion(host, setup, assignor)
        generation, base = settled(app, setup.bootstrap, GROUP, places, members=TASKS + 1)
        flow.start()
        for epoch in (1, 2):
            stays = beside.now.member_id
            tasks = {member: had for member, had in base.items() if member != stays}
            target = {**all_to_one(tasks), stays: base[stays]}
            plan = setup.plan(base, target, generation=generation, cluster=cluster, epoch=epoch)
            setup.publish(replace(plan, group=GROUP))
            wait_until(lambda target=target: owned(setup.bootstrap, GROUP) == target, what=f"plan {epoch}")
            generation, base = settled(
                app, setup.bootstrap, GROUP, places, members=TASKS + 1, after=generation
            )
        flow.end()
        records = PARTITIONS * (RECORDS + flow.produced)
        wait_until(lambda: sunk(tmp_path / "sink").total() >= records, what="every record in the file")
        beside.stop()

    written_once = sunk(tmp_path / "sink")
    assert len(written_once) == records
    assert set(written_once.values()) == {1}
    assert {ack.epoch for ack in setup.said(Applied)} == {1, 2}
    assert setup.said(Refused) == []
