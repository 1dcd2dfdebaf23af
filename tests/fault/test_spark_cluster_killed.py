"""Two workers of a standalone cluster and three brokers: ten kills, and in the end what Kafka's own tool says.

So many rows that executors read, fold, write and decide in every batch; their Python comes from a packed archive.
"""

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.local.embedded.cluster import EmbeddedCluster
from tests.support.brokers import kafka_tools
from tests.support.brokers.broker import OFFSETS_TOPIC, create_offsets_topic, create_topics, produce
from tests.support.brokers.cluster import leaders, small_cluster
from tests.support.brokers.commits import commit_everywhere
from tests.support.brokers.traffic import Traffic, control_records
from tests.support.job.job import NO_GUARDS, Row, read_table
from tests.support.job.transactions import terms
from tests.support.job.undisturbed import assert_nothing_doubled, assert_one_content_per_epoch
from tests.support.spark.packed_python import pack
from tests.support.spark.spark_cluster import SparkCluster, children, command_line
from tests.support.spark.submitted_driver import Drivers, SubmittedDriver
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(3600)
log = logging.getLogger(__name__)

_TOPIC, _PARTITIONS, _GROUPS = "wide", 1000, 160
_WITHIN_S = 300.0
_SETTINGS = """\
[source]
request_timeout_s = 5
[trigger]
interval_s = 1
[plan]
interval_s = 1
strategy = "lag-aware"
dry_run = false
max_staleness_s = 3600
[plan.guards]
""" + "".join(f"{k} = {v}\n" for k, v in NO_GUARDS.model_dump(exclude={"pin"}, exclude_none=True).items())


class Disturbed:
    """The story of the ten kills.

    Attributes:
        kills: What was killed, in order.
        statuses: Of the drivers that did not end by a SIGKILL of their own.
    """

    def __init__(self, folder: Path, brokers: EmbeddedCluster, spark: SparkCluster, archive: Path) -> None:
        self.brokers, self.spark = brokers, spark
        self.bootstrap = brokers.internal_servers
        self.kills: list[str] = []
        self._drivers = Drivers(
            folder, _SETTINGS, spark.url, of_drivers=self.bootstrap, of_executors=self.bootstrap
        )
        self._drivers.variables["LAGWISE_ENVIRONMENT"] = str(archive)
        self.config, self.root = self._drivers.config, self._drivers.config.tables.root
        self._round = 0
        try:
            with Traffic(self.bootstrap) as traffic:
                self._commit()
                self._driver = self._drivers.submit("driver-1")
                self._driver.wait_for_batches(2)
                self._standby: SubmittedDriver | None = None
                for name, kill in self._ten():
                    kill()
                    self.kills.append(name)
                    log.info("killed %s", name)
                    self._commit()
                    self._driver.wait_for_batches(2)
                    traffic.disturb()
            self.rows, self.tool = self._settled()
            self.ended = self._driver.end()
        finally:
            self._drivers.kill()

    def _ten(self) -> list[tuple[str, Callable[[], None]]]:
        return [
            ("executor", self._executor),
            ("worker", lambda: self._worker(0)),
            ("broker", lambda: self._broker(2)),
            ("driver", lambda: self._whole_driver("driver-2")),
            ("executor", self._executor),
            ("JVM of the driver", self._jvm),
            ("worker", lambda: self._worker(1)),
            ("broker", lambda: self._broker(3)),
            ("executor", self._executor),
            ("driver with a standby", self._driver_with_standby),
        ]

    def _executor(self) -> None:
        wait_until(self.spark.busy_executors, what="an executor at work", within_s=_WITHIN_S)
        self.spark.kill_executor(self.spark.busy_executors()[0])

    def _worker(self, number: int) -> None:
        for pid in self.spark.executors(number):
            self.spark.kill_executor(pid)
        self.spark.kill_worker(number)
        self._driver.wait_for_batches()
        self.spark.start_worker(number)
        self.spark.wait_for_workers(2)

    def _broker(self, number: int) -> None:
        node = self.brokers.node(number)
        node.kill()
        self._driver.wait_for_batches(2)
        node.start()
        wait_until(
            lambda: all(min(leaders(self.bootstrap, t).values()) >= 0 for t in (_TOPIC, OFFSETS_TOPIC)),
            what="leaders of all partitions",
            within_s=_WITHIN_S,
        )

    def _whole_driver(self, name: str) -> None:
        self._driver.kill()
        self._driver = self._drivers.submit(name)
        self._driver.wait_for_batches()

    def _jvm(self) -> None:
        (jvm,) = (pid for pid in children(self._driver.pid) if "org.apache.spark" in command_line(pid))
        pythons = children(jvm)
        os.kill(jvm, signal.SIGKILL)
        self._driver.ended()
        wait_until(
            lambda: not any(map(command_line, pythons)),
            what="the end of the driver's Python",
            within_s=_WITHIN_S,
        )
        self._driver = self._drivers.submit("driver-3")
        self._driver.wait_for_batches()

    def _driver_with_standby(self) -> None:
        standby = self._drivers.submit("standby", "--standby")
        wait_until(lambda: "standing by" in standby.said, what="a standby", within_s=_WITHIN_S)
        assert standby.batches == 0
        self._driver.kill()
        self._driver = standby
        standby.wait_for_batches()

    def _commit(self) -> None:
        """One record further in every partition, and a commit of every group for each."""
        produce(self.bootstrap, _TOPIC, dict.fromkeys(range(_PARTITIONS), 2))
        self._round += 1
        offset = self._round
        commit_everywhere(self.bootstrap, _TOPIC, _PARTITIONS, groups=_GROUPS, offset_of=lambda _: offset)

    def _settled(self) -> tuple[list[Row], tuple[kafka_tools.OffsetRow, ...]]:
        """The rows of the first batch that began after everything had ended, and what the tool says then."""
        quiet_at = time.time()

        def is_newer() -> bool:
            rows = read_table(self.config, "partition_lag")
            return not any(row["provisional"] or row["updated_at"].timestamp() < quiet_at for row in rows)

        wait_until(is_newer, what="a batch after all traffic", within_s=_WITHIN_S, every_s=2.0)
        return read_table(self.config, "partition_lag"), kafka_tools.describe_offsets(self.bootstrap)


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disturbed]:
    folder = tmp_path_factory.mktemp("cluster")
    archive = pack(folder / "environment.tar.gz")
    with small_cluster(3) as brokers, SparkCluster(folder / "spark", memory="1g") as spark:
        create_offsets_topic(brokers.internal_servers)
        create_topics(brokers.internal_servers, {_TOPIC: _PARTITIONS})
        yield Disturbed(folder, brokers, spark, archive)


def test_ten_were_killed(disturbed: Disturbed) -> None:
    assert len(disturbed.kills) == 10
    assert {name.partition(" ")[0] for name in disturbed.kills} == {
        "executor",
        "worker",
        "broker",
        "driver",
        "JVM",
    }
    assert disturbed.ended == 0


def test_every_row_is_the_tools(disturbed: Disturbed) -> None:
    stored = {
        (row["group_id"], row["topic"], row["partition"]): (
            row["committed_offset"],
            row["log_end_offset"],
            row["raw_lag"],
        )
        for row in disturbed.rows
    }

    printed = {
        (row.group_id, row.topic, row.partition): (row.committed_offset, row.log_end_offset, row.lag)
        for row in disturbed.tool
    }
    assert {key: stored.get(key) for key in printed} == printed
    assert len(stored) >= _GROUPS * _PARTITIONS
    assert stored.keys() == printed.keys()


def test_nothing_is_doubled_and_no_epoch_has_two_contents(disturbed: Disturbed) -> None:
    assert_nothing_doubled(disturbed.root)
    assert_one_content_per_epoch(disturbed.root, control_records(disturbed.bootstrap))


def test_each_driver_had_a_term_of_its_own(disturbed: Disturbed) -> None:
    assert terms(Path(disturbed.config.tables.root) / "planner_state") >= 4
