"""Sink tasks of a Kafka Connect worker that follow, with a member beside them that makes their group rebalance."""

from dataclasses import replace
from pathlib import Path

import pytest

from assignor.protocol.acks import Applied, Refused
from tests.support.brokers.broker import admin_client
from tests.support.brokers.flow import Flow
from tests.support.followers.plugin_setup import PARTITIONS, RECORDS, PluginSetup, all_to_one
from tests.support.java.connect_worker import TASKS, companion, group_of, sunk, worker
from tests.support.java.java_apps import owned, settled
from tests.support.java.java_jar import java_jar
from tests.support.java.java_members import COOPERATIVE, EAGER, JavaHost
from tests.support.waiting import wait_until


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])
def test_sink_tasks_apply_plans_with_a_companion_and_sink_each_record_once(
    setup: PluginSetup, tmp_path: Path, assignor: str
) -> None:
    cluster = admin_client(setup.bootstrap).list_topics(timeout=10).cluster_id
    places, group = [*setup.places, (setup.control, 0)], group_of(setup)
    flow = Flow(setup.bootstrap, setup.name, partitions=PARTITIONS, records_per_s=20)
    with worker(setup, tmp_path, assignor) as app, JavaHost(java_jar()) as host:
        beside = companion(host, setup, assignor)
        generation, base = settled(app, setup.bootstrap, group, places, members=TASKS + 1)
        flow.start()
        for epoch in (1, 2):
            stays = beside.now.member_id
            tasks = {member: had for member, had in base.items() if member != stays}
            target = {**all_to_one(tasks), stays: base[stays]}
            plan = setup.plan(base, target, generation=generation, cluster=cluster, epoch=epoch)
            setup.publish(replace(plan, group=group))
            wait_until(lambda target=target: owned(setup.bootstrap, group) == target, what=f"plan {epoch}")
            generation, base = settled(
                app, setup.bootstrap, group, places, members=TASKS + 1, after=generation
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
