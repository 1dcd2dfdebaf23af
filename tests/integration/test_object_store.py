"""Tables in a bucket of S3: the rows of the commits, the heartbeat, and a store that goes away and comes back."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.operate.cli.app import app
from pipeline.tables.owner import heartbeat
from pipeline.tables.owner.beat_file import FILE_NAME
from tests.support.brokers.broker import small_broker
from tests.support.job.job import RunningJob, running
from tests.support.job.stored import StoredJob
from tests.support.spark.object_store import BUCKET, ObjectStore, object_store
from tests.support.spark.store_proxy import StoreProxy

_MOST_REQUESTS = 150
"""Of 10,000 rows a batch makes 116; it made 1,515 when each step opened the tables that it read."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("store")) as running_store:
        yield running_store


@pytest.fixture(scope="module")
def world(store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredJob]:
    with small_broker() as broker:
        root = f"s3://{BUCKET}/lagwise"
        yield StoredJob(broker.bootstrap_servers, root, store.options, tmp_path_factory.mktemp("driver"))


def test_each_run_goes_on_where_the_tables_are(world: StoredJob) -> None:
    world.commit("g1", 0, 5)
    world.run()
    world.commit("g1", 1, 7)
    world.commit("g2", 0, 9)
    world.run()

    assert world.rows() == world.commits
    assert world.groups() == world.named
    assert not world.said("read again from its start")


def test_driver_gives_its_sign_of_life_in_the_bucket(world: StoredJob) -> None:
    root, options = world.tables.root, world.tables.storage_options

    with running(world.config()):
        beat = heartbeat.read(root, options)
        assert beat is not None
        assert not beat.is_stopped

    ended = heartbeat.read(root, options)
    assert ended is not None
    assert (ended.owner, ended.is_stopped) == (beat.owner, True)


def test_store_that_goes_away_is_waited_for_and_nothing_is_lost(world: StoredJob, store: ObjectStore) -> None:
    with running(world.config(), rests=False) as job:
        store.kill()
        world.commit("g2", 1, 11)
        job.wait(lambda: _says(job, "the tables cannot be written"), what="the driver says that it waits")
        store.start()
        job.wait(lambda: world.rows() == world.commits, what="the commit of the outage")

    assert not any("Traceback" in line for line in job.messages)


def test_driver_whose_term_is_over_writes_nothing(world: StoredJob) -> None:
    world.assert_old_term_writes_nothing()


def test_backup_holds_the_rows_of_the_bucket(world: StoredJob, tmp_path: Path) -> None:
    world.assert_backup_is_whole(tmp_path / "copy")


def test_commands_read_the_bucket_by_the_configuration(world: StoredJob, tmp_path: Path) -> None:
    file = tmp_path / "lagwise.toml"
    file.write_text(world.toml(), encoding="utf-8")

    lag = CliRunner().invoke(app, ["lag", "--config", str(file), "-o", "csv"])
    sql = CliRunner().invoke(app, ["sql", "--config", str(file), "SELECT 1"])

    assert lag.exit_code == 0, lag.output
    assert "g2" in lag.stdout
    assert sql.exit_code != 0
    assert "Hadoop's S3 client" in f"{sql.output}{sql.exception}"


def test_batch_makes_few_requests_and_none_twice(store: ObjectStore, tmp_path: Path) -> None:
    """Of the whole job: driver, tasks, and the process that chooses. A store that takes 2 s for each makes it late."""
    with small_broker() as broker, StoreProxy(store.port) as proxy:
        root, options = f"s3://{BUCKET}/counted", store.options_by(proxy.endpoint)
        world = StoredJob(broker.bootstrap_servers, root, options, tmp_path, upkeep_every_batches=1000)
        world.commit("g1", 0, 5)
        with running(world.config()) as job:
            # Until then tables are opened that earlier ones had no use for.
            job.wait_for_batches(3)
            proxy.take_requests()
            world.commit("g1", 0, 6)
            job.wait_for_batches()
            requests = [one for one in proxy.take_requests() if FILE_NAME not in one]

    assert 0 < len(requests) <= _MOST_REQUESTS, Counter(requests).most_common(20)


def _says(job: RunningJob, words: str) -> bool:
    return any(words in line for line in job.messages)
