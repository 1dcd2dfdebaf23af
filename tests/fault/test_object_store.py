"""Tables in an S3 bucket: a store that loses answers, restarts, is slow, full or read-only, and a driver that freezes.

Nothing is lost, nothing is written twice, and no term writes after a later one. Credentials come from the environment.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition

from pipeline.config.model import Config, TablesConfig
from pipeline.errors import StorageRefusedError
from pipeline.tables.owner import heartbeat
from pipeline.tables.owner.heartbeat import Beat
from pipeline.tables.schemas import TABLES
from tests.support.brokers.broker import small_broker
from tests.support.brokers.traffic import CONTROL_TOPIC, Traffic, control_records
from tests.support.job.forgetting import ForgetfulJob
from tests.support.job.host_driver import HostDriver
from tests.support.job.job import RunningJob, running
from tests.support.job.transactions import assert_one_owner_after_the_other, terms
from tests.support.job.undisturbed import assert_nothing_doubled, assert_one_content_per_epoch
from tests.support.spark.object_store import BUCKET, ObjectStore, object_store
from tests.support.spark.store_proxy import StoreProxy

pytestmark = pytest.mark.timeout(2400)

_WRITTEN_BY_BATCHES = ("topic_offsets", "partition_lag", "consumer_groups")
_RESTARTS = 3
_WAITS = "the tables cannot be written"
_PATIENCE_S = 12
_FENCED = 4
_SLOW_S = 2.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A store whose address is in the environment of this process and of its children."""
    with (
        object_store(tmp_path_factory.mktemp("store")) as running_store,
        pytest.MonkeyPatch.context() as environment,
    ):
        for name, value in running_store.options.items():
            environment.setenv(name, value)
        yield running_store


class Reached(NamedTuple):
    """A store that the job reaches through the proxy, and the test directly."""

    store: ObjectStore
    proxy: StoreProxy
    world: "Commits"


class Commits(ForgetfulJob):
    """Forged commits, a job whose tables are in the bucket, and a reader that bypasses the proxy."""

    def __init__(self, bootstrap: str, folder: Path, endpoint: str, store: ObjectStore, name: str) -> None:
        super().__init__(bootstrap, folder)
        self.way = TablesConfig(
            root=f"s3://{BUCKET}/{name}",
            checkpoint=str(folder / "checkpoint"),
            storage_options=store.options_by(endpoint),
            upkeep_every_batches=5,
        )
        self.short = self.way.model_copy(update={"storage_options": store.options})

    def config(self, **source: object) -> Config:
        return super().config(**source).model_copy(update={"tables": self.short})

    @property
    def of_job(self) -> Config:
        """Configuration of the job."""
        return self.config().model_copy(update={"tables": self.way})


@pytest.fixture
def reached(store: ObjectStore, tmp_path: Path) -> Iterator[Reached]:
    with small_broker() as broker, StoreProxy(store.port) as proxy:
        world = Commits(broker.bootstrap_servers, tmp_path, proxy.endpoint, store, tmp_path.name)
        for number in range(4):
            world.commit(f"g{number}", number % 2, number)
        yield Reached(store, proxy, world)


def _assert_written_once(reached: Reached, *, owners: int) -> None:
    root = reached.world.way.root
    assert_nothing_doubled(root)
    folders = [reached.store.path(Path(root).name, table) for table in _WRITTEN_BY_BATCHES]
    for folder in folders:
        assert_one_owner_after_the_other(folder)
    assert {terms(folder) for folder in folders} == {owners}


def _has_all(reached: Reached, job: RunningJob, *, what: str) -> None:
    job.wait(lambda: reached.world.rows() == reached.world.commits, what=what)


def test_commits_whose_answers_are_lost_are_made_once(reached: Reached) -> None:
    world, proxy = reached.world, reached.proxy
    # The creation of the table, the write of the term, and the first batch.
    proxy.lose_answers(*(f"/{table.name}/_delta_log/" for table in TABLES for _ in range(3)))
    with running(world.of_job, rests=False) as job:
        _has_all(reached, job, what="the first commits")
        world.commit("g3", 1, 80)
        _has_all(reached, job, what="the next commit")
        job.wait(lambda: proxy.answers_to_lose < len(TABLES), what="answers to be lost")

    _assert_written_once(reached, owners=1)


def test_store_that_is_restarted_amid_batches_costs_no_row(reached: Reached) -> None:
    world, store = reached.world, reached.store
    with running(world.of_job, rests=False) as job:
        _has_all(reached, job, what="the first commits")
        for number in range(_RESTARTS):
            before = len(_log_of(reached, "topic_offsets"))
            # The first table of a batch; the others are still to be written.
            job.wait(lambda n=before: len(_log_of(reached, "topic_offsets")) > n, what="a batch under way")
            store.kill()
            try:
                world.commit(f"g{number}", 1, 50 + number)
                _waits(job, times=number + 1)
            finally:
                store.start()
            _has_all(reached, job, what="the commit of the outage")
            _goes_on(job, times=number + 1)

    _assert_written_once(reached, owners=1 + _RESTARTS)


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [(507, "InsufficientStorage", r"\b507\b"), (403, "AccessDenied", "Access_?Denied")],
    ids=["full", "read-only"],
)
def test_store_that_takes_no_writes_for_a_while_is_waited_for(
    reached: Reached, status: int, code: str, words: str
) -> None:
    world, proxy = reached.world, reached.proxy
    with running(world.of_job, rests=False) as job:
        _has_all(reached, job, what="the first commits")
        proxy.refuse_writes(status, code)
        world.commit("g3", 0, 60)
        _waits(job, times=1)
        (said,) = (line for line in job.messages if _WAITS in line)
        assert re.search(words, said, re.IGNORECASE), said
        assert "Spark's tasks" not in said
        assert proxy.take_writes() > 0
        _has_all(reached, job, what="the commit of the meantime")
        _goes_on(job, times=1)

    _assert_written_once(reached, owners=2)


def test_tasks_that_may_not_write_end_the_driver_with_what_to_do(reached: Reached) -> None:
    """The driver may: it took the tables over. Nobody mends that by waiting."""
    reached.proxy.refuse_writes(403, "AccessDenied", to="/topic_offsets/part-")
    job = RunningJob(reached.world.of_job)

    with pytest.raises(
        StorageRefusedError, match=r"refuses Spark's tasks .* give the executors the driver's"
    ):
        job.run_out()

    assert not any(_WAITS in line for line in job.messages)
    assert reached.proxy.take_writes() > 0


def _log_of(reached: Reached, table: str) -> list[Path]:
    return list(reached.store.path(Path(reached.world.way.root).name, table, "_delta_log").iterdir())


def _waits(job: RunningJob, *, times: int) -> None:
    job.wait(lambda: _said(job, _WAITS) >= times, what="the driver to say that it waits")


def _goes_on(job: RunningJob, *, times: int) -> None:
    job.wait(lambda: _said(job, "the tables are written again") >= times, what="the driver to say so")


def _said(job: RunningJob, words: str) -> int:
    return sum(words in line for line in job.messages)


class _Written(NamedTuple):
    """What the bucket and the control topic hold, as far as a driver that should write neither could change it."""

    commits: dict[str, list[str]]
    end_of_topic: int
    owner: Beat | None


def _written(store: ObjectStore, root: str, bootstrap: str) -> _Written:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "looks", "log_level": 0})
    _, end = consumer.get_watermark_offsets(TopicPartition(CONTROL_TOPIC, 0), timeout=30)
    consumer.close()
    return _Written(_commits(store, root), end, heartbeat.read(root, {}))


def _commits(store: ObjectStore, root: str) -> dict[str, list[str]]:
    """The files of each table's log."""
    logs = {table.name: store.path(Path(root).name, table.name, "_delta_log") for table in TABLES}
    return {table: sorted(file.name for file in log.iterdir()) for table, log in logs.items()}


@pytest.mark.parametrize("step", ["store_topic_offsets", "record_decisions"])
def test_driver_that_wakes_when_its_standby_has_taken_over_writes_nothing(
    store: ObjectStore, tmp_path: Path, step: str
) -> None:
    """Both are stopped by themselves, so whatever is written between is the first one's."""
    root = f"s3://{BUCKET}/{tmp_path.name}"
    with (
        small_broker() as broker,
        Traffic(bootstrap := broker.bootstrap_servers),
        HostDriver(tmp_path / "first", bootstrap, root, patience_s=_PATIENCE_S, step=step) as first,
    ):
        first.wait(lambda: first.is_frozen, what=f"the first driver to freeze behind {step}")
        with HostDriver(
            tmp_path / "second", bootstrap, root, patience_s=_PATIENCE_S, step="maintain_tables"
        ) as second:
            second.wait(lambda: second.is_frozen, what="a take-over and a batch")
            before = _written(store, root, bootstrap)

            first.wake()
            status = first.ended()

            assert _written(store, root, bootstrap) == before
            assert status == _FENCED
            assert re.search(
                r"CRITICAL.*(belong to|publishes for cluster).* this (driver|one)\b.*stops", first.said
            )
            second.wake()
            second.wait(
                lambda: (
                    len(_commits(store, root)["partition_lag"]) > len(before.commits["partition_lag"]) + 2
                ),
                what="batches of the second driver",
            )
            second.terminate()
            assert second.ended() == 0
        assert_one_content_per_epoch(root, control_records(bootstrap))

    for table in TABLES:
        assert_one_owner_after_the_other(store.path(tmp_path.name, table.name))
        assert terms(store.path(tmp_path.name, table.name)) == 2, table.name
    assert_nothing_doubled(root)


def test_slow_store_costs_the_owner_neither_its_sign_of_life_nor_its_work(
    store: ObjectStore, tmp_path: Path
) -> None:
    """The standby's patience is the default; the store is slow for both of them, and for longer than that."""
    root = f"s3://{BUCKET}/{tmp_path.name}"
    with (
        StoreProxy(store.port) as proxy,
        small_broker() as broker,
        Traffic(bootstrap := broker.bootstrap_servers),
    ):
        ways = {
            "patience_s": heartbeat.SILENT_AFTER_S,
            "variables": {"AWS_ENDPOINT_URL": proxy.endpoint},
        }
        with HostDriver(tmp_path / "first", bootstrap, root, **ways) as first:
            first.wait(lambda: first.batches > 1, what="batches of the first driver")
            with HostDriver(tmp_path / "second", bootstrap, root, **ways) as second:
                second.wait(lambda: "standing by" in second.said, what="the second driver to stand by")
                proxy.delay(_SLOW_S)
                begun_s, before = time.monotonic(), len(_commits(store, root)["topic_offsets"])
                beats = set[int]()

                def has_worked_on() -> bool:
                    assert "no heartbeat from the owner" not in second.said
                    beats.add(_beat(root).at_ms)
                    # A batch makes a hundred requests, most of them one after the other: its first commit is waited for.
                    return (
                        time.monotonic() - begun_s > 1.5 * heartbeat.SILENT_AFTER_S
                        and len(_commits(store, root)["topic_offsets"]) > before
                    )

                first.wait(has_worked_on, what="a commit to a slow store", within_s=400)
                proxy.delay(0)
                batches = first.batches
                first.wait(lambda: first.batches >= batches + 3, what="batches on a fast store")
                assert len(beats) > 3
                assert "no heartbeat from the owner" not in second.said
                second.terminate()
                assert second.ended() == 0
            first.terminate()
            assert first.ended() == 0

    for table in TABLES:
        assert_one_owner_after_the_other(store.path(tmp_path.name, table.name))
        assert terms(store.path(tmp_path.name, table.name)) == 1, table.name
    assert_nothing_doubled(root)


def _beat(root: str) -> Beat:
    beat = heartbeat.read(root, {})
    assert beat is not None
    return beat
