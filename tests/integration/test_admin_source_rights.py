"""`source.offsets = "admin"` under a user that has no right to the offsets topic, and rights that come and go.

The job's source, steps and tables on a real broker with ACLs; tasks run in this process.
"""

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
from pipeline.errors import AccessRefusedError
from pipeline.kafka import cluster
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.assembly import admin_client
from tests.support.brokers.broker import create_topics, produce
from tests.support.brokers.secured import Right, Secured
from tests.support.job.here_job import HereJob
from tests.support.waiting import wait_until

USER, WATCHED, GROUP = "admin-source", "admin-watched", "admin-group"
CONTROL = ControlConfig(topic="admin.control", acks_topic="admin.acks", commands_topic="admin.commands")
OWN = (CONTROL.topic, CONTROL.acks_topic, CONTROL.commands_topic)
SEES_GROUP: Right = (AclOperation.DESCRIBE, ResourceType.GROUP, GROUP)
RIGHTS: tuple[Right, ...] = (
    *((AclOperation.READ, ResourceType.TOPIC, name) for name in OWN),
    (AclOperation.DESCRIBE, ResourceType.TOPIC, WATCHED),
    (AclOperation.DESCRIBE, ResourceType.GROUP, "lagwise-*"),
    SEES_GROUP,
)


@pytest.fixture(scope="module")
def guarded(secured: Secured) -> Secured:
    """One group that has committed, and the user, for whom its rights are in force."""
    create_topics(secured.open_servers, {WATCHED: 2, **dict.fromkeys(OWN, 1)})
    produce(secured.open_servers, WATCHED, {0: 30, 1: 30})
    consumer = Consumer({"bootstrap.servers": secured.open_servers, "group.id": GROUP, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(WATCHED, 0, 10)], asynchronous=False)
    consumer.close()
    secured.add_user(USER)
    secured.allow(USER, *RIGHTS)
    return secured


@pytest.fixture
def job(guarded: Secured, tmp_path: Path) -> HereJob:
    config = config_of(guarded, tmp_path)
    admin, _ = admin_client(config)

    def sees_the_group() -> bool:
        listed = admin.list_consumer_groups(request_timeout=5).result()
        return {*OWN, WATCHED} <= admin.list_topics(timeout=5).topics.keys() and GROUP in {
            one.group_id for one in listed.valid
        }

    wait_until(sees_the_group, what="the rights to take effect")
    return HereJob(config)


def config_of(secured: Secured, root: Path) -> Config:
    return Config(
        kafka=KafkaConfig(properties=secured.settings(USER)),
        tables=TablesConfig(root=str(root)),
        trigger=TriggerConfig(interval_s=1),
        control=CONTROL,
        source=SourceConfig(offsets="admin", request_timeout_s=5),
    )


def lags(job: HereJob) -> list[tuple[Any, ...]]:
    columns = ("group_id", "partition", "committed_offset", "lag", "unconfirmed_reason")
    return [tuple(row[name] for name in columns) for row in job.rows("partition_lag")]


def test_user_without_a_right_to_the_offsets_topic_gets_the_lag(job: HereJob) -> None:
    assert OFFSETS_TOPIC not in job.driver.services.topics

    done = job.batch()

    assert lags(job) == [(GROUP, 0, 10, 20, None)]
    assert OFFSETS_TOPIC not in {topic for topic, _ in done.stamp.positions or {}}


def test_the_same_user_is_refused_where_the_offsets_topic_is_read(guarded: Secured, job: HereJob) -> None:
    job.batch()
    admin, _ = admin_client(config_of(guarded, Path("unused")))

    with pytest.raises(AccessRefusedError, match=r"topic __consumer_offsets cannot be used: .*authorization"):
        cluster.inspect(admin, CONTROL, timeout_s=2)


def test_group_that_the_user_may_not_see_any_more_keeps_its_row_with_the_reason(
    guarded: Secured, job: HereJob
) -> None:
    job.batch()
    everyone = AclBindingFilter(
        ResourceType.GROUP, GROUP, ResourcePatternType.LITERAL, f"User:{USER}", "*", *_ANY_RIGHT
    )
    for future in guarded.admin.delete_acls([everyone]).values():
        future.result(timeout=10)

    def is_marked() -> bool:
        job.batch()
        return any(row[-1] for row in lags(job))

    wait_until(is_marked, what="the group to be marked", within_s=60)
    for _ in range(3):
        job.batch()
    ((group, number, committed, lag, why),) = lags(job)
    assert (group, number, committed, lag) == (GROUP, 0, 10, 20)
    assert why.startswith("no broker lists the group any more")

    guarded.allow(USER, SEES_GROUP)

    def is_back() -> bool:
        job.batch()
        return lags(job) == [(GROUP, 0, 10, 20, None)]

    wait_until(is_back, what="the mark to go", within_s=60)


_ANY_RIGHT = AclOperation.ANY, AclPermissionType.ANY
