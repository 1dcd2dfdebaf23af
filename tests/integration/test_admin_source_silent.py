"""`source.offsets = "admin"`, two coordinators, one of which falls silent, or is gone: its groups stay, marked as old.

The job's source, steps and tables; tasks run in this process. The groups' own clients go past the proxies.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from pipeline.config.model import SourceConfig
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from tests.support.brokers.broker import produce
from tests.support.brokers.cluster import ProxiedCluster, create_replicated_topics, proxied_cluster
from tests.support.brokers.inject import offsets_partition
from tests.support.job.here_job import HereJob
from tests.support.job.job import job_config
from tests.support.waiting import wait_until

TOPIC, END = "admin-silent", 30
OFFSETS = [[1], [2], [1], [2]]
"""Brokers of each partition of the offsets topic."""


def _group_of(broker: int) -> str:
    names = (f"admin-silent-{number}" for number in range(1000))
    return next(name for name in names if OFFSETS[offsets_partition(name)] == [broker])


HERE, AWAY = _group_of(1), _group_of(2)


@pytest.fixture(scope="module")
def bench() -> Iterator[ProxiedCluster]:
    with proxied_cluster(2, default_replication_factor="1", offsets_topic_replication_factor="1") as running:
        own = {name: [[1]] for name in ("lagwise.assignments", "lagwise.acks", "lagwise.commands")}
        compacted = {OFFSETS_TOPIC: OFFSETS, **own}
        create_replicated_topics(running.cluster.internal_servers, compacted, cleanup_policy="compact")
        create_replicated_topics(running.cluster.internal_servers, {TOPIC: [[1]]})
        produce(running.cluster.internal_servers, TOPIC, {0: END})
        yield running


def commit(bench: ProxiedCluster, group: str, offset: int) -> None:
    servers = bench.cluster.internal_servers
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    consumer.close()


def lags(job: HereJob) -> dict[str, tuple[Any, ...]]:
    """Committed offset, lag, and whether the row is marked, by group."""
    return {
        row["group_id"]: (row["committed_offset"], row["lag"], row["unconfirmed_reason"] is not None)
        for row in job.rows("partition_lag")
    }


def test_groups_of_a_silent_coordinator_stay_marked_as_old_and_all_others_go_on(
    bench: ProxiedCluster, tmp_path: Path
) -> None:
    commit(bench, HERE, 1)
    commit(bench, AWAY, 2)
    source = SourceConfig(offsets="admin", request_timeout_s=4)
    job = HereJob(job_config(bench.cluster.bootstrap_servers, tmp_path, source=source))
    job.batch()
    assert lags(job) == {HERE: (1, END - 1, False), AWAY: (2, END - 2, False)}

    bench.proxies[2].black_hole()
    commit(bench, HERE, 10)
    commit(bench, AWAY, 20)
    done = job.batch()
    assert lags(job) == {HERE: (10, END - 10, False), AWAY: (2, END - 2, True)}
    assert any(AWAY in remark for remark in done.stamp.remarks)
    for _ in range(2):
        job.batch()
    assert lags(job)[AWAY] == (2, END - 2, True)

    bench.proxies[2].refuse()
    bench.proxies[2].forward()

    def is_back() -> bool:
        job.batch()
        return lags(job) == {HERE: (10, END - 10, False), AWAY: (20, END - 20, False)}

    wait_until(is_back, what="the commit of the group whose coordinator was silent", within_s=90)


def test_groups_of_a_broker_that_is_gone_stay_though_all_others_have_listed_theirs(
    bench: ProxiedCluster, tmp_path: Path
) -> None:
    commit(bench, HERE, 1)
    commit(bench, AWAY, 2)
    source = SourceConfig(offsets="admin", request_timeout_s=4)
    job = HereJob(job_config(bench.cluster.bootstrap_servers, tmp_path, source=source))
    job.batch()

    bench.cluster.node(2).kill()

    def is_unlisted() -> bool:
        job.batch()
        reasons = {row["unconfirmed_reason"] for row in job.rows("partition_lag") if row["group_id"] == AWAY}
        return any("no broker lists the group" in (why or "") for why in reasons)

    # From then on the brokers that there are answer, and none of them is the group's coordinator.
    wait_until(is_unlisted, what="a complete listing without the group", within_s=120)
    for _ in range(3):
        job.batch()
    assert lags(job) == {HERE: (1, END - 1, False), AWAY: (2, END - 2, True)}
