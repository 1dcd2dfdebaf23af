"""A real YARN with HDFS: drivers and executors in containers, which have what deploy/submit.sh ships and nothing else.

Real sizes, as on the standalone cluster: executors read 52,000 commits at a time. The brokers let them in by TLS and a
password, both in files that were shipped.
"""

import logging
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from pipeline.clock import now_ms
from pipeline.config.load import load
from pipeline.local.jars import pyspark_jars
from tests.support.brokers import kafka_tools
from tests.support.brokers.broker import OFFSETS_TOPIC, create_topics, produce
from tests.support.brokers.commits import commit_everywhere
from tests.support.brokers.secured import Right, Secured, secured_broker
from tests.support.brokers.traffic import Traffic, control_records
from tests.support.job.job import NO_GUARDS, Row, read_table
from tests.support.job.transactions import terms
from tests.support.job.undisturbed import assert_nothing_doubled, assert_one_content_per_epoch
from tests.support.spark.executor_python import linked_python
from tests.support.spark.packed_python import pack
from tests.support.spark.spark_cluster import command_line, descendants
from tests.support.spark.submitted_driver import SubmittedDriver
from tests.support.spark.yarn import Application, Yarn

pytestmark = pytest.mark.timeout(1800)

ROOT = Path(__file__).parents[2]
_TOPIC, _PARTITIONS, _GROUPS = "wide", 1000, 52
_USER = "lagwise"
_WITHIN_S = 300.0
_EXECUTORS = "--num-executors 2 --executor-cores 1"
_CLUSTER = f"yarn --deploy-mode cluster {_EXECUTORS} --conf spark.driver.memoryOverhead=1g"
_SPARK_OF_HOSTS = f"--conf spark.yarn.jars=local:{pyspark_jars()}/*"
_CLIENT = f"yarn --deploy-mode client {_EXECUTORS}"
_BATCH = re.compile(r" batch batch_id=\d+ ")
_PUBLISHED = re.compile(r" batch batch_id=\d+ .* published=[1-9]")
TOPIC = ResourceType.TOPIC
_RIGHTS: tuple[Right, ...] = (
    (AclOperation.READ, TOPIC, OFFSETS_TOPIC),
    *((AclOperation.DESCRIBE, TOPIC, name) for name in (_TOPIC, "orders", "invoices")),
    (AclOperation.ALL, TOPIC, "lagwise.*"),
    (AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "lagwise-*"),
    (AclOperation.DESCRIBE, ResourceType.GROUP, "lagwise-*"),
)
_CONFIG = """\
[kafka.properties]
"bootstrap.servers" = "{servers}"
"security.protocol" = "SASL_SSL"
"ssl.ca.location" = "ca.pem"
"sasl.mechanism" = "SCRAM-SHA-512"
"sasl.username" = "{user}"
"sasl.password" = "file:password"
[tables]
root = "{tables}"
shared = true
[trigger]
interval_s = 1
[plan]
interval_s = 1
strategy = "lag-aware"
dry_run = false
max_staleness_s = 3600
[plan.guards]
""" + "".join(f"{k} = {v}\n" for k, v in NO_GUARDS.model_dump(exclude={"pin"}, exclude_none=True).items())


class Snapshot(NamedTuple):
    """Lag when nothing changes any more."""

    rows: list[Row]
    tool: tuple[kafka_tools.OffsetRow, ...]
    """What Kafka's own tool says."""


class Story:
    """An application whose first container is killed, and which is killed itself, and two that go on after it.

    Attributes:
        first: In cluster mode. YARN starts it again when its first container was killed; then somebody kills it.
        second: In cluster mode, after the first, on hosts that have Spark.
        third: In client mode, while the second one runs, on hosts that have Python, too.
        statuses: Of `submit.sh`, in this order.
        pythons: Of the first executors, by process id, as they were started.
        paths: PYTHONPATH in the containers of a driver and of an executor.
        after_kill: What the second one has read.
        after_takeover: What the third one has read.
    """

    def __init__(self, folder: Path, broker: Secured, yarn: Yarn, archive: Path) -> None:
        self.broker, self.yarn = broker, yarn
        self._folder = folder
        self._packed = {"LAGWISE_ENVIRONMENT": str(archive)}
        self._file = folder / "lagwise.toml"
        text = _CONFIG.format(servers=broker.servers, user=_USER, tables=folder / "tables")
        self._file.write_text(text, encoding="utf-8")
        self.config = load(self._file)
        self._round = 0
        self._scripts: list[SubmittedDriver] = []
        try:
            with Traffic(broker.open_servers):
                self.first = self._killed_twice()
            self.second = self._submitted(f"{_CLUSTER} {_SPARK_OF_HOSTS}", self._packed)
            self.after_kill = self._settled(self.second)
            self.third = self._taken_over()
            self.after_takeover = self._settled(self.third)
            self._scripts[2].end()
            self._wait(lambda: self.third.has_ended, "the end of the third application", self.third)
            self.statuses = [script.ended() for script in self._scripts]
        finally:
            for script in self._scripts:
                script.kill()

    def _killed_twice(self) -> Application:
        self._commit()
        first = self._submitted(_CLUSTER, self._packed)
        self._wait(lambda: len(_pythons(first)) == 2, "Python of two executors", first)
        self.pythons = {pid: command_line(pid) for pid in _pythons(first)}
        self.paths = [_python_path(pid) for pid in (first.master(), *self.pythons)]
        self._wait(lambda: _PUBLISHED.search(first.log), "a plan", first)
        os.kill(first.master(), signal.SIGKILL)
        self._wait(
            lambda: first.attempts == 2 and _BATCH.search(first.log), "a batch of the second attempt", first
        )
        self._commit()
        first.kill()
        self._wait(
            lambda: first.has_ended and not first.executors(), "the end of the killed application", first
        )
        return first

    def _taken_over(self) -> Application:
        self._commit()
        python = linked_python(self._folder / "python")
        third = self._submitted(f"{_CLIENT} {_SPARK_OF_HOSTS}", {"PYSPARK_PYTHON": str(python)})
        self._scripts[2].wait_for_batches()
        self._wait(lambda: self.second.has_ended, "the end of the application that was fenced", self.second)
        return third

    def _submitted(self, master: str, python: Mapping[str, str]) -> Application:
        """One more, by a script whose folder has what the clients of a driver in client mode look for there."""
        before = len(self.yarn.applications())
        folder = self._folder / f"submit-{before}"
        folder.mkdir()
        shipped = [self.broker.ca, self.broker.password_file]
        for file in shipped:
            (folder / file.name).write_bytes(file.read_bytes())
        files = {"HADOOP_CONF_DIR": str(self.yarn.conf), "LAGWISE_FILES": ",".join(map(str, shipped))}
        script = SubmittedDriver(folder, self._file, master=master, variables={**python, **files})
        self._scripts.append(script)

        def is_there() -> bool:
            assert script.status is None, script.said
            return len(self.yarn.applications()) > before

        self.yarn.wait(is_there, what="an application", within_s=_WITHIN_S)
        return self.yarn.applications()[-1]

    def _commit(self) -> None:
        """One record more in every partition, and a commit of every group for each."""
        produce(self.broker.open_servers, _TOPIC, dict.fromkeys(range(_PARTITIONS), 2))
        self._round += 1
        offset = self._round
        commit_everywhere(
            self.broker.open_servers, _TOPIC, _PARTITIONS, groups=_GROUPS, offset_of=lambda _: offset
        )

    def _settled(self, application: Application) -> Snapshot:
        """What a batch says that began after everything had ended."""
        quiet_at_ms = now_ms()

        def is_newer() -> bool:
            rows = read_table(self.config, "partition_lag")
            oldest = min(row["updated_at"].timestamp() for row in rows)
            return oldest * 1000 > quiet_at_ms and not any(row["provisional"] for row in rows)

        self._wait(is_newer, "a batch after all traffic", application)
        return Snapshot(
            read_table(self.config, "partition_lag"), kafka_tools.describe_offsets(self.broker.open_servers)
        )

    def _wait(self, condition: Callable[[], object], what: str, application: Application) -> None:
        logging.getLogger("yarn").info(what)
        try:
            self.yarn.wait(condition, what=what, within_s=_WITHIN_S)
        except AssertionError as error:
            scripts = "\n".join(script.said[-4000:] for script in self._scripts)
            raise AssertionError(f"{error}\n{application.logs}\n{scripts}") from None


def _pythons(application: Application) -> list[int]:
    """Process ids of those that start the Python of tasks."""
    found = [pid for executor in application.executors() for pid in descendants(executor)]
    return [pid for pid in found if "pyspark.daemon" in command_line(pid)]


def _python_path(pid: int) -> str:
    variables = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    (value,) = (one.partition("=")[2] for one in variables if one.startswith("PYTHONPATH="))
    return value


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("yarn")
    (folder / "broker").mkdir()
    with ThreadPoolExecutor(1) as pool:
        packing = pool.submit(pack, folder / "environment.tar.gz")
        with secured_broker(folder / "broker") as broker, Yarn(folder / "hadoop") as yarn:
            create_topics(broker.open_servers, {_TOPIC: _PARTITIONS})
            broker.add_user(_USER)
            broker.allow(_USER, *_RIGHTS)
            yield Story(folder, broker, yarn, packing.result())


def test_executors_run_the_packed_python(story: Story) -> None:
    assert len(story.pythons) == 2
    assert {line.partition(" ")[0] for line in story.pythons.values()} == {"./environment/bin/python"}


def test_code_in_containers_is_what_was_shipped(story: Story) -> None:
    for path in story.paths:
        places = path.split(":")
        assert any(Path(place).name.startswith("lagwise-") for place in places)
        assert str(ROOT) not in places


@pytest.mark.parametrize("moment", ["after_kill", "after_takeover"])
def test_lag_is_the_one_of_kafkas_own_tool(story: Story, moment: str) -> None:
    snapshot: Snapshot = getattr(story, moment)

    stored = {(r["group_id"], r["topic"], r["partition"]): _figures(r) for r in snapshot.rows}
    printed = {
        (r.group_id, r.topic, r.partition): (r.committed_offset, r.log_end_offset, r.lag)
        for r in snapshot.tool
    }
    assert stored == printed
    assert len(stored) > _GROUPS * _PARTITIONS


def test_nothing_is_doubled_and_no_epoch_has_two_contents(story: Story) -> None:
    assert_nothing_doubled(story.config.tables.root)
    assert_one_content_per_epoch(story.config.tables.root, control_records(story.broker.open_servers))


def test_nothing_stays_in_the_default_file_system(story: Story) -> None:
    """The checkpoint lies with the tables, which have no such path there."""
    assert story.yarn.in_hdfs("/") == ["user"]
    (user,) = story.yarn.in_hdfs("/user")
    assert story.yarn.in_hdfs(f"/user/{user}") == [".sparkStaging"]
    assert story.yarn.in_hdfs(f"/user/{user}/.sparkStaging") == []


def test_each_driver_had_a_term_of_its_own(story: Story) -> None:
    assert terms(Path(story.config.tables.root) / "planner_state") == 4


def test_application_that_was_fenced_is_not_started_again(story: Story) -> None:
    assert story.second.attempts == 1
    assert "belong to driver" in story.second.log.splitlines()[-1]


def test_statuses(story: Story) -> None:
    assert story.statuses == [1, 0, 0]


def _figures(row: Row) -> tuple[int, int, int]:
    return row["committed_offset"], row["log_end_offset"], row["raw_lag"]
