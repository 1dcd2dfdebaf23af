"""The history of real groups: a row when members come and go or subscribe anew, none while nothing changes.

And what `partition_lag` foretells of a real topic: whether its lag grows, and how long unread records are kept.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from deltalake import DeltaTable

from pipeline.config.model import RatesConfig
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import admin_client, create_topics, produce
from tests.support.job.job import RunningJob, job_config, running
from tests.support.waiting import wait_until

Row = dict[str, Any]
TOPICS = {"history-a": 4, "history-b": 2}
RETENTION_S = 7200


class Group:
    """Live members of one group, which poll while somebody waits for the job."""

    def __init__(self, bootstrap: str, group_id: str, **config: str) -> None:
        self.group_id = group_id
        self.members: dict[str, Consumer] = {}
        self._config = {
            "bootstrap.servers": bootstrap,
            "group.id": group_id,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in config.items()},
        }

    def join(self, name: str, *topics: str) -> None:
        """A member with this client id, which need not have joined yet."""
        self.members[name] = Consumer({**self._config, "client.id": name})
        self.members[name].subscribe(list(topics))

    def leave(self, name: str) -> None:
        self.members.pop(name).close()

    def wait_for_assignments(self) -> None:
        """Return when each member has partitions."""

        def are_assigned() -> bool:
            self.poll()
            return all(member.assignment() for member in self.members.values())

        wait_until(are_assigned, what=f"partitions of each member of {self.group_id}")

    def poll(self) -> None:
        for member in self.members.values():
            member.poll(0)

    def close(self) -> None:
        for name in list(self.members):
            with suppress(RuntimeError):
                self.leave(name)


@pytest.fixture(scope="module")
def job(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningJob]:
    create_topics(broker.bootstrap_servers, TOPICS)
    config = job_config(
        broker.bootstrap_servers, tmp_path_factory.mktemp("tables"), rates=RatesConfig(half_life_s=2)
    )
    with running(config) as started:
        yield started


def history(job: RunningJob, group: Group) -> list[Row]:
    table = DeltaTable(f"{job.config.tables.root}/group_history").to_pyarrow_table()
    rows: list[Row] = table.sort_by("updated_at").to_pylist(maps_as_pydicts="strict")
    return [row for row in rows if row["group_id"] == group.group_id]


def wait_for_row(job: RunningJob, group: Group, why: str, *clients: str) -> Row:
    """The first row of the group that says why, of these members, each of which has been given something."""

    def fitting() -> Iterator[Row]:
        group.poll()
        for row in history(job, group):
            members = row["members"] or ()
            if (
                why in row["why"].split(", ")
                and sorted(one["client_id"] for one in members) == sorted(clients)
                and all(any(one["assigned"].values()) for one in members)
            ):
                yield row

    # A broker writes down a new group before its first member has joined: a batch in between sees it without members.
    group.wait_for_assignments()
    job.wait(lambda: any(fitting()), what=f"a row of {group.group_id} with {clients}: {why}")
    return next(fitting())


def test_members_that_come_go_and_subscribe_anew_are_in_the_history_of_a_classic_group(
    broker: EmbeddedBroker, job: RunningJob
) -> None:
    group = Group(broker.bootstrap_servers, "history-classic")
    try:
        group.join("a", "history-a")
        first = wait_for_row(job, group, "first_seen", "a")
        group.join("b", "history-a")
        both = wait_for_row(job, group, "joined", "a", "b")
        group.members["a"].subscribe(["history-a", "history-b"])
        other = wait_for_row(job, group, "resubscribed", "a", "b")
        group.leave("b")
        alone = wait_for_row(job, group, "left", "a")
        rows = len(history(job, group))
        job.wait_for_batches(2)
    finally:
        group.close()

    assert len(history(job, group)) == rows
    assert (first["joined"], len(both["joined"]), len(alone["left"])) == (None, 1, 1)
    (held_first,) = first["members"]
    assert held_first["assigned"] == {"history-a": [0, 1, 2, 3]}
    assert sorted(p for one in both["members"] for p in one["assigned"]["history-a"]) == [0, 1, 2, 3]
    assert sorted(len(one["topics"]) for one in other["members"]) == [1, 2]
    generations = [row["generation"] for row in history(job, group)]
    assert generations == sorted(generations)
    assert first["generation"] < both["generation"] < other["generation"] < alone["generation"]


def test_history_of_a_kip_848_group_has_its_epochs_and_who_joined_and_left(
    broker: EmbeddedBroker, job: RunningJob
) -> None:
    group = Group(broker.bootstrap_servers, "history-848", group_protocol="consumer")

    def generations() -> list[int]:
        group.poll()
        return [row["generation"] for row in history(job, group)]

    def wait_for_more() -> None:
        before = len(history(job, group))
        job.wait(lambda: len(generations()) > before, what="a new epoch")

    try:
        group.join("a", "history-a")
        wait_for_more()
        group.join("b", "history-a")
        wait_for_more()
        group.leave("b")
        wait_for_more()
    finally:
        group.close()

    rows = history(job, group)
    assert {row["group_type"] for row in rows} == {"consumer"}
    assert rows[0]["why"] == "first_seen"
    (joined,) = (row for row in rows if row["joined"])
    (left,) = (row for row in rows if row["left"])
    assert joined["joined"] == left["left"]
    assert [len(row["members"]) for row in (rows[0], joined, left)] == [1, 2, 1]
    epochs = [row["generation"] for row in rows]
    assert epochs == sorted(epochs)
    (stored,) = (row for row in job.rows("consumer_groups") if row["group_id"] == group.group_id)
    assert stored["generation"] == epochs[-1]


def test_lag_of_a_group_that_stopped_grows_and_what_it_has_not_read_is_kept_for_a_known_time(
    broker: EmbeddedBroker, job: RunningJob
) -> None:
    topics = {"history-kept": 1, "history-compacted": 1}
    create_topics(broker.bootstrap_servers, topics)
    configure(broker, "history-kept", "retention.ms", str(RETENTION_S * 1000))
    configure(broker, "history-compacted", "cleanup.policy", "compact")
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "history-stopped", "log_level": 0}
    )
    consumer.commit(offsets=[TopicPartition(topic, 0, 0) for topic in topics], asynchronous=False)
    consumer.close()
    job.wait(lambda: job.lags("history-stopped"), what="the commits")

    def kept() -> Row:
        for topic in topics:
            produce(broker.bootstrap_servers, topic, {0: 200})
        return job.lags("history-stopped")["history-kept", 0]

    job.wait(
        lambda: kept()["trend"] == "growing" and kept()["retention_seconds"] is not None,
        what="a trend and a time",
    )
    rows = job.lags("history-stopped")
    row = rows["history-kept", 0]
    assert RETENTION_S - 300 < row["retention_seconds"] < RETENTION_S
    assert row["retention_seconds"] == pytest.approx(RETENTION_S - row["lag_seconds"])
    assert rows["history-compacted", 0]["retention_seconds"] is None

    admin = admin_client(broker.bootstrap_servers)
    for future in admin.delete_records([TopicPartition("history-kept", 0, 100)]).values():
        future.result(30)
    job.wait(
        lambda: job.lags("history-stopped")["history-kept", 0]["status"] == "EXPIRED", what="deleted records"
    )
    assert job.lags("history-stopped")["history-kept", 0]["retention_seconds"] == 0


def configure(broker: EmbeddedBroker, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = admin_client(broker.bootstrap_servers)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
