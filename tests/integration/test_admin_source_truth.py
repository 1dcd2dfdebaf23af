"""`source.offsets = "admin"`: coordinators are asked in place of the offsets topic, and the tables say the same.

What is compared: Kafka's own tool, and a job that reads the topic. The job's source, steps and tables on a real broker;
tasks run in this process (`test_admin_source.py` has them in Spark).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition

from pipeline.config.model import SourceConfig
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.tables.stamp import NO_PLANS_BY_ANSWERS
from pipeline.tables.store import Store
from tests.support.brokers import kafka_tools
from tests.support.brokers.broker import admin_client, small_broker
from tests.support.brokers.kafka_tools import MemberRow, OffsetRow, StateRow
from tests.support.groups.groups_zoo import Zoo, zoo
from tests.support.groups.zoo_kinds import KINDS
from tests.support.job.here_job import HereJob
from tests.support.job.job import job_config

SAME = (
    *(
        "group_id",
        "topic",
        "partition",
        "committed_offset",
        "log_start_offset",
        "log_end_offset",
        "lag",
        "raw_lag",
    ),
    *("member_id", "group_instance_id", "client_id", "client_host", "assigned", "commit_topic_id"),
)
"""Columns of `partition_lag` that do not depend on when or how commits were read."""
BY_HAND = "admin-by-hand"


class Seen(NamedTuple):
    """A paused zoo, what a job that asks coordinators has made of it, and what others say."""

    bootstrap: str
    animals: Zoo
    root: Path
    under_way: list[int | None]
    """Log end less commit of every row, while consumers and producers were at work."""
    lags: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    history: list[dict[str, Any]]
    plans: list[dict[str, Any]]
    of_topic: list[dict[str, Any]]
    """`partition_lag` of a job that has read the offsets topic after the first one had ended."""
    offsets: tuple[OffsetRow, ...]
    members: tuple[MemberRow, ...]
    states: tuple[StateRow, ...]


def source(offsets: Any) -> SourceConfig:
    return SourceConfig(request_timeout_s=5, offsets=offsets, groups_exclude=("lagwise.*",))


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with small_broker() as broker, zoo(broker.bootstrap_servers) as animals:
        bootstrap, root = broker.bootstrap_servers, tmp_path_factory.mktemp("admin")
        job = HereJob(job_config(bootstrap, root, source=source("admin")))
        under_way = []
        for _ in range(3):
            job.batch()
            under_way += [row["raw_lag"] for row in job.rows("partition_lag")]
        animals.pause_traffic()
        # The first sees the last commits and the first rates of some; by the second nothing moves any more.
        job.batch()
        job.batch()
        reader = HereJob(job_config(bootstrap, tmp_path_factory.mktemp("topic"), source=source("topic")))
        reader.batch()
        reader.batch()
        yield Seen(
            bootstrap=bootstrap,
            animals=animals,
            root=root,
            under_way=under_way,
            lags=job.rows("partition_lag"),
            groups=job.rows("consumer_groups"),
            history=job.rows("group_history"),
            plans=job.rows("plan_state"),
            of_topic=reader.rows("partition_lag"),
            offsets=kafka_tools.describe_offsets(bootstrap),
            members=kafka_tools.describe_members(bootstrap),
            states=kafka_tools.describe_states(bootstrap),
        )


def test_every_row_is_the_tools(seen: Seen) -> None:
    assert {row.group_id for row in seen.offsets} == seen.animals.kinds.keys()
    assert {_as_printed(row) for row in seen.lags} == set(seen.offsets)


def test_every_row_is_that_of_a_job_that_reads_the_offsets_topic(seen: Seen) -> None:
    assert _same(seen.lags) == _same(seen.of_topic)


def test_no_commit_is_newer_than_the_log_end_it_is_held_against(seen: Seen) -> None:
    known = [lag for lag in seen.under_way if lag is not None]

    assert len(known) > len(seen.lags)
    assert min(known) >= 0


def test_rates_history_and_trend_need_no_time_of_a_commit(seen: Seen) -> None:
    moved = [row for row in seen.lags if row["drain_rate"]]

    assert moved
    assert all(row["commit_timestamp"] is None and row["commit_position"] is None for row in seen.lags)
    assert all(row["recent_commits"] for row in seen.lags if row["committed_offset"] is not None)
    # No samples tell the lag at a time that nobody knows.
    assert {row["lag_at_commit"] for row in seen.lags} <= {0, None}


def test_no_row_is_provisional_or_marked_as_old(seen: Seen) -> None:
    assert not any(row["provisional"] or row["unconfirmed_reason"] for row in seen.lags)
    assert not any(row["unconfirmed_reason"] for row in seen.groups)


def test_groups_and_members_are_the_tools(seen: Seen) -> None:
    states = {row.group_id: row for row in seen.states}
    groups = {row["group_id"]: row for row in seen.groups}

    assert groups.keys() == seen.animals.kinds.keys()
    for name, group in groups.items():
        kind = seen.animals.kinds[name]
        assert (group["group_type"], group["state"]) == (kind.group_type.lower(), states[name].state)
        assert (group["generation"], group["leader"]) == (None, None)
    described = {row for row in seen.members if groups[row.group_id]["members"] is not None}
    assert {row.group_id for row in described} >= {
        kind.group_id for kind in KINDS if kind.group_type == "Classic" and kind.state == "Stable"
    }
    assert {
        (
            group["group_id"],
            member["member_id"],
            member["group_instance_id"],
            member["client_host"],
            member["client_id"],
            sum(len(numbers) for _, numbers in member["assigned"] or ()),
        )
        for group in seen.groups
        for member in group["members"] or ()
    } == {
        (row.group_id, row.member_id, row.group_instance_id, row.host, row.client_id, row.partitions)
        for row in described
    }


def test_group_history_has_a_row_for_each_group_that_was_first_seen(seen: Seen) -> None:
    first = [row["group_id"] for row in seen.history if row["why"] == "first_seen"]

    assert sorted(first) == sorted(seen.animals.kinds)
    assert not any("resubscribed" in row["why"] for row in seen.history)


def test_no_plan_is_made_and_every_group_says_why(seen: Seen) -> None:
    assert {(row["decision"], row["reason"]) for row in seen.plans} == {
        ("abstain", f"provisional: {NO_PLANS_BY_ANSWERS}")
    }


def test_offsets_topic_is_not_read(seen: Seen) -> None:
    stamp = Store(str(seen.root), term=0).stamp("partition_lag")

    assert stamp is not None
    assert OFFSETS_TOPIC not in {topic for topic, _ in stamp.positions or {}}


def test_commit_shows_in_the_next_batch_and_a_deletion_when_it_was_confirmed(
    seen: Seen, tmp_path: Path
) -> None:
    _commit(seen.bootstrap, 1)
    # A client that nobody holds is gone before the answer comes.
    admin = admin_client(seen.bootstrap)
    job = HereJob(job_config(seen.bootstrap, tmp_path, source=source("admin")))

    job.batch()
    assert _committed(job) == {0: 1}
    _commit(seen.bootstrap, 2)
    job.batch()
    assert _committed(job) == {0: 2}
    admin.delete_consumer_groups([BY_HAND])[BY_HAND].result(10)
    job.batch()
    assert _committed(job) == {0: 2}
    assert {row["provisional"] for row in job.rows("partition_lag") if row["group_id"] == BY_HAND} == {True}
    job.batch()
    assert _committed(job) == {}

    assert {row["group_id"] for row in job.rows("consumer_groups")} == seen.animals.kinds.keys()
    assert {row["group_id"] for row in job.rows("partition_lag")} == seen.animals.kinds.keys()
    assert "gone" in [row["why"] for row in job.rows("group_history") if row["group_id"] == BY_HAND]


def test_tables_of_the_one_source_go_on_with_the_other(seen: Seen, tmp_path: Path) -> None:
    for offsets in ("topic", "admin", "topic", "admin"):
        job = HereJob(job_config(seen.bootstrap, tmp_path, source=source(offsets)))
        job.batch()
        job.batch()

        assert _same(job.rows("partition_lag")) == _same(seen.lags), offsets
        assert not any(row["provisional"] for row in job.rows("partition_lag")), offsets
        # Values from records that coordinators do not report are dropped, too.
        is_dated = {
            row["commit_timestamp"] is not None
            for row in job.rows("partition_lag")
            if row["committed_offset"]
        }
        assert is_dated == {offsets == "topic"}


def _commit(bootstrap: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": BY_HAND, "log_level": 0})
    consumer.commit(offsets=[TopicPartition("zoo-even", 0, offset)], asynchronous=False)
    consumer.close()


def _committed(job: HereJob) -> dict[int, int]:
    return {
        row["partition"]: row["committed_offset"]
        for row in job.rows("partition_lag")
        if row["group_id"] == BY_HAND
    }


def _same(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {
        (row["group_id"], row["topic"], row["partition"]): {name: row[name] for name in SAME} for row in rows
    }


def _as_printed(row: dict[str, Any]) -> OffsetRow:
    names = ("group_id", "topic", "partition", "committed_offset", "log_end_offset", "member_id", "client_id")
    return OffsetRow(**{name: row[name] for name in names}, host=row["client_host"], lag=row["raw_lag"])
