"""A standalone cluster with two workers, none of which has anything of lagwise but what the driver ships.

Real sizes: so many commits are read, and so many partitions decided about, that the executors do both.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from pipeline.config.model import Config
from tests.support.brokers import kafka_tools
from tests.support.brokers.broker import create_offsets_topic, create_topics, produce, small_broker
from tests.support.brokers.commits import commit_everywhere
from tests.support.brokers.proxy import Proxy
from tests.support.job.job import Row, read_table
from tests.support.job.transactions import terms
from tests.support.spark.spark_cluster import SparkCluster
from tests.support.spark.submitted_driver import Drivers, SubmittedDriver
from tests.support.waiting import wait_until

_TOPIC, _PARTITIONS, _GROUPS = "wide", 1000, 52
_FENCED = 4
_CONFIG = "[trigger]\ninterval_s = 1\n[plan]\ninterval_s = 1\n"


class Story(NamedTuple):
    """What became of two drivers and an executor."""

    config: Config
    first: SubmittedDriver
    second: SubmittedDriver
    batches_at_kill: int
    bytes_of_executors: int
    """That went to the broker by the address which only executors were given."""
    fenced: int
    ended: int
    executors_left: list[int]
    rows: list[Row]
    tool: tuple[kafka_tools.OffsetRow, ...]


def _left(cluster: SparkCluster) -> list[int]:
    """Executors that go on without their driver; one that is told to end needs a moment."""
    with suppress(AssertionError):
        wait_until(lambda: not cluster.executors(), what="the end of the executors", within_s=30)
    return cluster.executors()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("cluster")
    with small_broker() as broker, Proxy() as proxy, SparkCluster(folder / "spark") as cluster:
        bootstrap = broker.bootstrap_servers
        proxy.target_port = int(bootstrap.rpartition(":")[2])
        _commit_all(bootstrap)
        drivers = Drivers(
            folder, _CONFIG, cluster.url, of_drivers=bootstrap, of_executors=f"127.0.0.1:{proxy.port}"
        )
        try:
            first = drivers.submit("first")
            wait_until(cluster.busy_executors, what="an executor at work", within_s=180)
            cluster.kill_executor(cluster.busy_executors()[0])
            batches_at_kill = first.batches
            first.wait_for_batches()
            second = drivers.submit("second")
            fenced = first.ended()
            second.wait_for_batches(2)
            rows = read_table(drivers.config, "partition_lag")
            tool = kafka_tools.describe_offsets(bootstrap)
            ended = second.end()
            yield Story(
                config=drivers.config,
                first=first,
                second=second,
                batches_at_kill=batches_at_kill,
                bytes_of_executors=proxy.passed_bytes,
                fenced=fenced,
                ended=ended,
                executors_left=_left(cluster),
                rows=rows,
                tool=tool,
            )
        finally:
            drivers.kill()


def _commit_all(bootstrap: str) -> None:
    create_offsets_topic(bootstrap)
    create_topics(bootstrap, {_TOPIC: _PARTITIONS})
    produce(bootstrap, _TOPIC, {number: number % 5 for number in range(_PARTITIONS)})
    commit_everywhere(bootstrap, _TOPIC, _PARTITIONS, groups=_GROUPS, offset_of=lambda number: number % 3)


def test_batch_whose_executor_is_killed_ends_with_every_commit(story: Story) -> None:
    assert story.batches_at_kill == 0
    assert "Lost executor" in story.first.said
    (first_batch,) = (line for line in story.first.said.splitlines() if "batch batch_id=0 " in line)
    assert f'counts={{"commit": {_GROUPS * _PARTITIONS}}}' in first_batch


def test_lag_is_the_one_of_kafkas_own_tool(story: Story) -> None:
    stored = {(r["group_id"], r["topic"], r["partition"]): _figures(r) for r in story.rows}

    printed = {
        (r.group_id, r.topic, r.partition): (r.committed_offset, r.log_end_offset, r.lag) for r in story.tool
    }
    assert stored == printed
    assert len(stored) == _GROUPS * _PARTITIONS
    assert not any(row["provisional"] for row in story.rows)


def test_executors_resolve_what_settings_refer_to(story: Story) -> None:
    assert story.bytes_of_executors > 0


def test_second_driver_fences_the_first(story: Story) -> None:
    assert story.fenced == _FENCED, story.first.said
    assert "belong to driver" in story.first.said.splitlines()[-1]
    assert terms(Path(story.config.tables.root) / "planner_state") == 2


def test_driver_that_is_told_to_end_leaves_in_good_order(story: Story) -> None:
    assert story.ended == 0, story.second.said
    assert "ERROR" not in story.second.said
    assert story.executors_left == []


def _figures(row: Row) -> tuple[int, int, int]:
    return row["committed_offset"], row["log_end_offset"], row["raw_lag"]
