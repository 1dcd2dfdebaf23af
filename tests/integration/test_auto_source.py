"""`source.offsets = "auto"`: the right to the topic is revoked and granted again while the job runs, on a broker with ACLs.

At no moment does a row say a commit that was not made or another lag, or goes back to an earlier commit, unless it says
that it is provisional.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from pipeline.config.model import (
    Config,
    ControlConfig,
    KafkaConfig,
    SourceConfig,
    TablesConfig,
    TriggerConfig,
)
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.batch.steps import run
from pipeline.tables.stamp import NO_PLANS_BY_ANSWERS, Stamp
from pipeline.tables.store import Store
from tests.support.brokers.broker import create_topics, produce, small_broker
from tests.support.brokers.secured import Right, Secured
from tests.support.job.job import RunningJob, health_of, job_config, running
from tests.support.waiting import wait_until

USER, WATCHED, GROUP, END = "auto-source", "auto-watched", "auto-group", 1000
CONTROL = ControlConfig(topic="auto.control", acks_topic="auto.acks", commands_topic="auto.commands")
OWN = (CONTROL.topic, CONTROL.acks_topic, CONTROL.commands_topic)
SEES_TOPIC: Right = (AclOperation.DESCRIBE, ResourceType.TOPIC, OFFSETS_TOPIC)
READS_TOPIC: Right = (AclOperation.READ, ResourceType.TOPIC, OFFSETS_TOPIC)
RIGHTS: tuple[Right, ...] = (
    *((AclOperation.READ, ResourceType.TOPIC, name) for name in OWN),
    (AclOperation.DESCRIBE, ResourceType.TOPIC, WATCHED),
    (AclOperation.DESCRIBE, ResourceType.GROUP, "lagwise-*"),
    (AclOperation.DESCRIBE, ResourceType.GROUP, GROUP),
)


class Member:
    """A member of the group, which commits in one of two partitions; and the values that rows may then have.

    Attributes:
        committed: The newest commit.
        seen: The newest that a row has said.
        wrong: Rows that said something else, and not that they are provisional.
    """

    def __init__(self, secured: Secured) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": secured.open_servers,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([WATCHED])
        wait_until(self._has_partitions, what="the member to have its partitions")
        self.committed = self.seen = 0
        self.wrong: list[dict[str, Any]] = []

    def _has_partitions(self) -> bool:
        self._consumer.poll(0.1)
        return len(self._consumer.assignment()) == 2

    def commit(self, offset: int) -> None:
        self._consumer.commit(offsets=[TopicPartition(WATCHED, 0, offset)], asynchronous=False)
        self.committed = offset

    def close(self) -> None:
        self._consumer.close()

    def row(self, job: RunningJob) -> dict[str, Any]:
        """The row of the partition with commits; empty while there is none."""
        row = job.lags(GROUP).get((WATCHED, 0), {})
        committed = row.get("committed_offset") or 0
        is_as_committed = committed <= self.committed and row.get("lag") in {END - committed, None}
        if not (is_as_committed and committed >= self.seen) and not row.get("provisional"):
            self.wrong.append(row)
        self.seen = max(self.seen, committed)
        return row


@pytest.fixture(scope="module")
def guarded(secured: Secured) -> Secured:
    create_topics(secured.open_servers, {WATCHED: 2, **dict.fromkeys(OWN, 1)})
    produce(secured.open_servers, WATCHED, {0: END, 1: END})
    secured.add_user(USER)
    return secured


@pytest.fixture
def member(guarded: Secured) -> Iterator[Member]:
    made = Member(guarded)
    made.commit(10)
    yield made
    made.close()


def config_of(secured: Secured, root: Path) -> Config:
    return Config(
        kafka=KafkaConfig(properties=secured.settings(USER)),
        tables=TablesConfig(root=str(root)),
        trigger=TriggerConfig(interval_s=1),
        control=CONTROL,
        source=SourceConfig(
            offsets="auto", request_timeout_s=5, groups_include=(GROUP,), topics_include=(WATCHED,)
        ),
    )


def stamp_of(job: RunningJob) -> Stamp:
    stamp = Store(job.config.tables.root, term=0).stamp("partition_lag")
    assert stamp is not None
    return stamp


def generation(job: RunningJob) -> int | None:
    (row,) = (row for row in job.rows("consumer_groups") if row["group_id"] == GROUP)
    found: int | None = row["generation"]
    return found


def take_away(secured: Secured) -> None:
    """Every right to the offsets topic."""
    everything = AclBindingFilter(
        ResourceType.TOPIC,
        OFFSETS_TOPIC,
        ResourcePatternType.LITERAL,
        f"User:{USER}",
        "*",
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    for future in secured.admin.delete_acls([everything]).values():
        future.result(timeout=10)


@pytest.mark.parametrize("left", [(), (SEES_TOPIC,)], ids=["hidden", "seen and not read"])
def test_right_to_the_topic_that_goes_and_comes_back_changes_the_source_and_no_figure(
    guarded: Secured, member: Member, tmp_path: Path, left: tuple[Right, ...]
) -> None:
    guarded.allow(USER, *RIGHTS, READS_TOPIC)

    def is_read(job: RunningJob) -> bool:
        row = member.row(job)
        return (
            bool(row)
            and (row["committed_offset"], row["provisional"]) == (member.committed, False)
            and row["commit_timestamp"] is not None
            and (generation(job) or 0) > 0
        )

    def is_asked(job: RunningJob) -> bool:
        row = member.row(job)
        return (
            bool(row)
            and (row["committed_offset"], row["provisional"]) == (member.committed, False)
            and stamp_of(job).held == NO_PLANS_BY_ANSWERS
        )

    with running(config_of(guarded, tmp_path), run_batch=run) as job:
        job.wait(lambda: is_read(job), what="the records")
        assert stamp_of(job).held != NO_PLANS_BY_ANSWERS

        take_away(guarded)
        if left:
            guarded.allow(USER, *left)
        job.wait(lambda: is_asked(job), what="the coordinator's answer")
        # The offset is that of the record, but the time of its newest commit is now unknown.
        assert (member.row(job)["commit_timestamp"], generation(job)) == (None, None)
        assert any("coordinators are asked because" in why for why in health_of(job).reasons)
        member.commit(member.committed + 10)
        job.wait(lambda: is_asked(job), what="the next commit")

        take_away(guarded)
        guarded.allow(USER, READS_TOPIC)
        job.wait(lambda: is_read(job), what="the records again")
        assert not any("coordinators are asked" in why for why in health_of(job).reasons)
        member.commit(member.committed + 10)
        job.wait(lambda: is_read(job), what="the last commit")

    assert member.wrong == []
    assert not any("Traceback" in line for line in job.messages)


def test_cluster_without_an_offsets_topic_is_asked_and_the_topic_is_taken_once_it_is_there(
    tmp_path: Path,
) -> None:
    with small_broker() as broker:
        create_topics(broker.bootstrap_servers, {WATCHED: 2})
        produce(broker.bootstrap_servers, WATCHED, {0: END})
        source = SourceConfig(offsets="auto", request_timeout_s=5, groups_include=(GROUP,))
        with running(job_config(broker.bootstrap_servers, tmp_path, source=source), run_batch=run) as job:
            consumer = Consumer(
                {"bootstrap.servers": broker.bootstrap_servers, "group.id": GROUP, "log_level": 0}
            )
            consumer.commit(offsets=[TopicPartition(WATCHED, 0, 7)], asynchronous=False)
            consumer.close()
            job.wait(
                lambda: job.lags(GROUP).get((WATCHED, 0), {}).get("commit_timestamp"),
                what="the commit's record",
            )
            (row,) = job.lags(GROUP).values()
            assert (row["committed_offset"], row["lag"]) == (7, END - 7)
        assert any("the brokers report no topic" in line for line in job.messages)
