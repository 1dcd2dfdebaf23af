"""The job and the sink tasks of a Kafka Connect worker: it sees them with their lag, and they follow its plan."""

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from assignor.protocol.acks import Applied
from assignor.protocol.ranges import parse_ranges
from pipeline.config.model import ControlConfig, GroupRule
from pipeline.local.embedded.config import free_port
from tests.support.brokers.broker import produce
from tests.support.brokers.commits import commits_of
from tests.support.followers.plugin_setup import PARTITIONS, RECORDS, PluginSetup
from tests.support.java.connect_worker import TASKS, companion, group_of, sunk, told, worker
from tests.support.java.java_apps import Owned, owned, settled
from tests.support.java.java_jar import java_jar
from tests.support.java.java_members import COOPERATIVE, EAGER, JavaHost
from tests.support.job.here_job import HereJob
from tests.support.job.job import eager_plan, job_config
from tests.support.waiting import wait_until

Row = dict[str, Any]


class SeenByJob:
    """What the job sees of the group of a connector, and decides about it."""

    def __init__(self, setup: PluginSetup, folder: Path, *, dry_run: bool) -> None:
        self._topic, self._group = setup.name, group_of(setup)
        rule = GroupRule(pattern=re.escape(self._group), dry_run=dry_run)
        config = job_config(
            setup.bootstrap,
            folder / "tables",
            plan=eager_plan(groups=(rule,)),
            control=ControlConfig(topic=setup.control, acks_topic=setup.acks),
        )
        self._job = HereJob(config)

    def decide(self) -> Row:
        """The decision of one more batch."""
        self._job.batch()
        rows = self._rows("plan_state")
        return rows[0] if rows else {}

    def group(self) -> Row:
        (row,) = self._rows("consumer_groups")
        return row

    def members(self) -> Owned:
        return {
            one["member_id"]: frozenset((topic, n) for topic, numbers in one["assigned"] for n in numbers)
            for one in self.group()["members"]
        }

    def lags(self) -> dict[int, int]:
        """By partition of the topic that the connector reads."""
        rows = self._rows("partition_lag")
        return {row["partition"]: row["lag"] for row in rows if row["topic"] == self._topic}

    def _rows(self, table: str) -> list[Row]:
        return [row for row in self._job.rows(table) if row["group_id"] == self._group]


def target_of(row: Row) -> Owned:
    """Of a decision."""
    return {
        member: frozenset((topic, n) for topic, ranges in topics for n in parse_ranges(ranges, at_most=100))
        for member, topics in row["assignment"]
    }


def burden(setup: PluginSetup, places: frozenset[tuple[str, int]]) -> dict[int, int]:
    """Two of these partitions get records, and no other; how many each partition has got."""
    first, second = sorted(number for _, number in places)[:2]
    produce(setup.bootstrap, setup.name, {first: 900, second: 700})
    return {**dict.fromkeys(range(PARTITIONS), 0), first: 900, second: 700}


def wait_for_commits(setup: PluginSetup) -> None:
    """Return when everything that lay there at first is committed: what comes later is lag."""
    done = {(number, RECORDS) for number in range(PARTITIONS)}

    def is_done() -> bool:
        found = commits_of(setup.bootstrap, group_of(setup))
        return done <= {(one.partition, one.offset) for one in found}

    wait_until(is_done, what="commits of all records")


def clients_of(setup: PluginSetup) -> set[str]:
    """As Connect calls the consumers of the tasks."""
    return {f"connector-consumer-{setup.name}-{number}" for number in range(TASKS)}


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])
def test_job_sees_sink_tasks_and_their_lag_and_they_apply_its_plan_before_they_go_on(
    setup: PluginSetup, tmp_path: Path, assignor: str
) -> None:
    port, group = free_port(), group_of(setup)
    with ExitStack() as stack:
        app = stack.enter_context(worker(setup, tmp_path, assignor, port=port))
        beside = companion(stack.enter_context(JavaHost(java_jar())), setup, assignor)
        places = [*setup.places, (setup.control, 0)]
        _, base = settled(app, setup.bootstrap, group, places, members=TASKS + 1)
        wait_for_commits(setup)
        told(setup, port, "pause")
        task = min(set(base) - {beside.now.member_id})
        unread = burden(setup, base[task])
        job = SeenByJob(setup, tmp_path, dry_run=False)
        published: list[Row] = []

        def is_published() -> bool:
            published[:] = [row for row in [job.decide()] if row.get("decision") == "publish"]
            return bool(published)

        wait_until(is_published, what="a plan of the job's")
        members, lags, seen = job.members(), job.lags(), job.group()
        target = target_of(published[0])
        wait_until(lambda: owned(setup.bootstrap, group) == target, what="the target of the plan")
        wait_until(lambda: (job.decide()["plan"] or {}).get("status") == "applied", what="the plan applied")
        told(setup, port, "resume")
        wait_until(lambda: job.decide() and not any(job.lags().values()), what="no lag after commits")
        beside.stop()

    assert (members, lags) == (base, unread)
    assert {one["client_id"] for one in seen["members"]} > clients_of(setup)
    assert (seen["protocol_type"], seen["assignor"], seen["state"]) == ("consumer", "lagwise", "Stable")
    assert target != base
    assert {ack.member for ack in setup.said(Applied) if ack.epoch == published[0]["epoch"]} == set(base)
    written = sunk(tmp_path / "sink")
    assert (len(written), set(written.values())) == (PARTITIONS * RECORDS + sum(unread.values()), {1})


def test_job_sees_plain_sink_tasks_and_their_lag_and_has_a_plan_for_them_that_moves_nothing(
    setup: PluginSetup, tmp_path: Path
) -> None:
    port, group = free_port(), group_of(setup)
    with worker(setup, tmp_path, None, port=port) as app:
        _, base = settled(app, setup.bootstrap, group, setup.places, members=TASKS)
        wait_for_commits(setup)
        told(setup, port, "pause")
        unread = burden(setup, base[min(base)])
        job = SeenByJob(setup, tmp_path, dry_run=True)
        wait_until(lambda: job.decide().get("decision") == "dry_run", what="a plan")
        decided = job.decide()
        members, lags, seen = job.members(), job.lags(), job.group()
        after = owned(setup.bootstrap, group)

    assert (members, lags, after) == (base, unread, base)
    assert {one["client_id"] for one in seen["members"]} == clients_of(setup)
    assert seen["protocol_type"] == "consumer"
    assert decided["moves"]
    assert set(target_of(decided)) == set(base)
