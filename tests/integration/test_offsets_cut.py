"""The offsets topic loses its beginning while no driver runs: what is left does not show who lives; the brokers do."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, OffsetSpec, ResourceType

from pipeline.config.model import Config
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.run.batch.steps import run
from pipeline.tables.store import Store
from tests.support.brokers.broker import (
    OFFSETS_PARTITIONS,
    OFFSETS_TOPIC,
    admin_client,
    create_topics,
    produce,
    small_broker,
)
from tests.support.brokers.inject import offsets_partition
from tests.support.brokers.kafka_tools import describe_offsets
from tests.support.job.job import RunningJob, health_of, job_config, running
from tests.support.waiting import wait_until

TOPIC, PARTITIONS, END = "cut", 3, 50
DAY_MS = 86_400_000
ASLEEP = tuple(f"asleep-{number}" for number in range(8))
"""Groups that commit before the driver goes, and never again."""
EVERYWHERE = tuple(
    next(f"on-{number}-{i}" for i in range(100) if offsets_partition(f"on-{number}-{i}") == number)
    for number in range(OFFSETS_PARTITIONS)
)
"""A group in each partition of the offsets topic, so that each has records that nobody reads."""
pytestmark = pytest.mark.timeout(900)

Commits = dict[tuple[str, str, int], int]


class World:
    """A broker with groups that live, one that is deleted while nobody reads, and one that comes then."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.bootstrap = broker.bootstrap_servers
        self.admin = admin_client(self.bootstrap)
        create_topics(self.bootstrap, {TOPIC: PARTITIONS})
        produce(self.bootstrap, TOPIC, dict.fromkeys(range(PARTITIONS), END))
        for number, group in enumerate((*ASLEEP, *EVERYWHERE, "dead", "moves-on")):
            self.commit(group, {0: 1 + number, 1: 2 + number})
        self.member = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "member",
                "client.id": "m",
                "enable.auto.commit": "false",
                "log_level": 0,
            }
        )
        self.member.subscribe([TOPIC])
        wait_until(lambda: self.member.poll(0.1) or self.member.assignment(), what="an assignment")
        self.member.commit(offsets=[TopicPartition(TOPIC, 0, 7)], asynchronous=False)

    def commit(self, group: str, offsets: dict[int, int]) -> None:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group, "log_level": 0})
        consumer.commit(
            offsets=[TopicPartition(TOPIC, number, offset) for number, offset in offsets.items()],
            asynchronous=False,
        )
        consumer.close()

    def live_on(self) -> None:
        """What happens while no driver runs."""
        self.commit("moves-on", {0: 30, 2: 31})
        self.commit("born", {1: 40})
        for group in EVERYWHERE:
            self.commit(group, {0: 20})
        self.admin.delete_consumer_groups(["dead"])["dead"].result()

    def cut(self) -> None:
        """All records of the offsets topic go; what the coordinators know of groups stays."""
        self._configure({"cleanup.policy": "delete", "retention.ms": "1"})
        wait_until(lambda: self._ends("earliest") == self._ends("latest"), what="an empty log", within_s=60)
        self._configure({"cleanup.policy": "compact", "retention.ms": "604800000"})

    def _ends(self, which: Literal["earliest", "latest"]) -> dict[int, int]:
        partitions = [TopicPartition(OFFSETS_TOPIC, number) for number in range(OFFSETS_PARTITIONS)]
        wanted = OffsetSpec.earliest() if which == "earliest" else OffsetSpec.latest()
        ends = self.admin.list_offsets(dict.fromkeys(partitions, wanted))
        return {place.partition: future.result().offset for place, future in ends.items()}

    def _configure(self, values: dict[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in values.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, OFFSETS_TOPIC, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result()

    def commits(self) -> Commits:
        """By Kafka's own tool."""
        return {
            (row.group_id, row.topic, row.partition): row.committed_offset
            for row in describe_offsets(self.bootstrap)
            if row.committed_offset is not None
        }


@pytest.fixture
def world() -> Iterator[World]:
    with small_broker(log_retention_check_interval_ms="500", log_initial_task_delay_ms="500") as broker:
        yield World(broker)


def commits_of(job: RunningJob) -> Commits:
    return {
        (row["group_id"], row["topic"], row["partition"]): row["committed_offset"]
        for row in job.rows("partition_lag")
        if row["committed_offset"] is not None
    }


def let_a_day_pass(config: Config) -> None:
    """Make the tables those of a driver that ended yesterday."""
    tables = Store(config.tables.root, term=0)
    stamp = tables.stamp("partition_lag")
    assert stamp is not None
    assert stamp.positions is not None
    positions = {
        key: replace(one, at_end_ms=one.at_end_ms - DAY_MS - 1) for key, one in stamp.positions.items()
    }
    tables.under(tables.highest_term() + 1).restamp("partition_lag", replace(stamp, positions=positions))


@pytest.mark.parametrize("is_a_day_away", [False, True], ids=["a minute", "a day"])
def test_cut_beginning_costs_no_live_group_and_keeps_no_dead_one(
    world: World, tmp_path: Path, *, is_a_day_away: bool
) -> None:
    config = job_config(world.bootstrap, tmp_path / "tables")
    committed = world.commits()
    with running(config, run_batch=run) as job:
        job.wait(lambda: commits_of(job) == committed, what="all commits")
        (group,) = (row for row in job.rows("consumer_groups") if row["group_id"] == "member")
    known = {(name, TOPIC, number) for name in (*ASLEEP, "moves-on") for number in (0, 1)}
    if is_a_day_away:
        let_a_day_pass(config)
    world.live_on()
    world.cut()
    committed = world.commits()

    with running(config, run_batch=run) as job:
        first = {(r["group_id"], r["topic"], r["partition"]): r for r in job.rows("partition_lag")}
        assert known <= first.keys()
        assert all(first[key]["provisional"] and first[key]["unconfirmed_reason"] for key in known)
        job.wait_for_batches(1)
        assert any("may be out of date" in reason for reason in health_of(job).reasons)

        job.wait(lambda: commits_of(job) == committed, what="what Kafka's own tool says")

        # That there is no commit has to be said twice.
        job.wait(
            lambda: not any(row["unconfirmed_reason"] for row in job.rows("partition_lag")),
            what="all confirmed",
        )
        assert commits_of(job) == world.commits()
        (now,) = (row for row in job.rows("consumer_groups") if row["group_id"] == "member")
        assert (now["members"], now["unconfirmed_reason"]) == (group["members"], None)
        job.wait_for_batches(1)
        assert health_of(job).state == "ok"
        (warning,) = (
            line for line in job.messages if "read again from its start" in line and OFFSETS_TOPIC in line
        )
        assert "beginning_deleted" in warning
    world.member.close()
