"""The offsets topic loses what it had: an unclean election, seen while the job runs and seen by the next run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.brokers.broker import OFFSETS_TOPIC, produce
from tests.support.brokers.cluster import (
    create_replicated_topics,
    elect_unclean,
    in_sync,
    leaders,
    small_cluster,
)
from tests.support.brokers.inject import commit_record, inject, offsets_partition
from tests.support.groups.group_records import group_record, member
from tests.support.job.job import RunningJob, job_config, running
from tests.support.waiting import wait_until

END = 100
TRUNCATED = 3
_PLACED = {OFFSETS_TOPIC: [[1, 2], [1, 2], [1, 2], [2, 3]]}
_ON_1 = {
    "__transaction_state": [[1], [1]],
    "lagwise.assignments": [[1]],
    "lagwise.acks": [[1]],
    "lagwise.commands": [[1]],
}
pytestmark = pytest.mark.timeout(1200)


def named(prefix: str) -> str:
    """A group in the partition that is truncated."""
    return next(name for i in range(1000) if offsets_partition(name := f"{prefix}-{i}") == TRUNCATED)


KEPT, LOST, LATER = named("kept"), named("lost"), named("later")


class Truncated:
    """A cluster whose broker 3 lacks the newest records of the partition, until it is made to lead."""

    def __init__(self) -> None:
        self.cluster = small_cluster(min_insync_replicas="1")

    def prepare(self) -> None:
        bootstrap = self.cluster.bootstrap_servers
        create_replicated_topics(bootstrap, _PLACED, cleanup_policy="compact")
        create_replicated_topics(bootstrap, _ON_1, cleanup_policy="compact")
        create_replicated_topics(bootstrap, {"t": [[1]]})
        produce(bootstrap, "t", {0: END})
        self.commit(KEPT, 10)

    def commit(self, group: str, offset: int) -> None:
        busy = member("m", "t", assigned={"t": (0,)})
        inject(
            self.cluster.bootstrap_servers, [group_record(group, busy), commit_record(group, "t", 0, offset)]
        )

    def fall_behind(self) -> None:
        """Broker 3 stops, and records come that it does not have."""
        self.cluster.node(3).stop()
        self._wait_for_in_sync(frozenset({2}))
        self.commit(KEPT, 20)
        for offset in range(30, 40):
            self.commit(LOST, offset)

    def lose(self) -> None:
        """The only broker that has them goes, and broker 3 leads without them; then the log grows again."""
        self.cluster.node(2).stop()
        self.cluster.node(3).start()
        bootstrap = self.cluster.bootstrap_servers
        wait_until(lambda: leaders(bootstrap, OFFSETS_TOPIC)[TRUNCATED] == -1, what="no leader", within_s=60)
        assert elect_unclean(bootstrap, OFFSETS_TOPIC, TRUNCATED) == 3
        self.commit(LATER, 50)

    def _wait_for_in_sync(self, brokers: frozenset[int]) -> None:
        bootstrap = self.cluster.bootstrap_servers
        wait_until(
            lambda: in_sync(bootstrap, OFFSETS_TOPIC)[TRUNCATED] == brokers,
            what=f"{brokers} in sync",
            within_s=60,
        )


@pytest.fixture
def truncated() -> Iterator[Truncated]:
    made = Truncated()
    with made.cluster:
        made.prepare()
        yield made


def committed(job: RunningJob) -> dict[str, int]:
    """Of the groups, all rows final; else nothing."""
    rows = [row for row in job.rows("partition_lag") if row["committed_offset"] is not None]
    if any(row["provisional"] for row in rows):
        return {}
    return {row["group_id"]: row["committed_offset"] for row in rows}


def test_truncation_while_the_job_runs_is_seen_and_read_again(truncated: Truncated, tmp_path: Path) -> None:
    truncated.fall_behind()
    with running(job_config(truncated.cluster.bootstrap_servers, tmp_path / "tables"), rests=False) as job:
        job.wait(lambda: committed(job) == {KEPT: 20, LOST: 39}, what="what is to be lost")

        truncated.lose()

        job.wait(lambda: committed(job) == {KEPT: 10, LATER: 50}, what="what is left")
        assert any("read again from its start" in line for line in job.messages)
        assert {row["group_id"] for row in job.rows("consumer_groups")} == {KEPT, LATER}


def test_truncation_while_the_job_was_down_is_seen_though_the_log_has_grown_beyond_its_position(
    truncated: Truncated, tmp_path: Path
) -> None:
    truncated.fall_behind()
    config = job_config(truncated.cluster.bootstrap_servers, tmp_path / "tables")
    with running(config, rests=False) as job:
        job.wait(lambda: committed(job) == {KEPT: 20, LOST: 39}, what="what is to be lost")
    truncated.lose()
    # More records than were lost: by its offset the position looks true, its leader epoch says that it is not.
    for offset in range(40):
        truncated.commit(LATER, offset)

    with running(config, rests=False) as job:
        job.wait(lambda: committed(job) == {KEPT: 10, LATER: 39}, what="what is left")
        assert any("log truncated" in line for line in job.messages)
