"""Tables in a container of Azure: the rows of the commits, the heartbeat, and commits of several writers."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from typer.testing import CliRunner

from pipeline.operate.cli.app import app
from pipeline.tables.owner import heartbeat
from pipeline.tables.reading import Tables
from tests.support.brokers.broker import small_broker
from tests.support.job.job import running
from tests.support.job.stored import StoredJob
from tests.support.spark.azure_store import ACCOUNT, CONTAINER, AzureStore, azure_store
from tests.support.spark.store_proxy import StoreProxy

_COMMITS = 10
_WAITS, _GOES_ON = "the tables cannot be written", "the tables are written again"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureStore]:
    with azure_store(tmp_path_factory.mktemp("azure")) as running_store:
        yield running_store


@pytest.fixture(scope="module")
def proxy(store: AzureStore) -> Iterator[StoreProxy]:
    with StoreProxy(store.port) as running_proxy:
        yield running_proxy


@pytest.fixture(scope="module")
def world(
    store: AzureStore, proxy: StoreProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StoredJob]:
    """The job whose container is reached through the proxy."""
    root, options = f"az://{CONTAINER}/lagwise", store.options_by(proxy.endpoint)
    with small_broker() as broker:
        yield StoredJob(broker.bootstrap_servers, root, options, tmp_path_factory.mktemp("driver"))


def test_job_keeps_the_commits_and_its_sign_of_life_and_waits_for_a_store_that_refuses(
    world: StoredJob, proxy: StoreProxy
) -> None:
    root, options = world.tables.root, world.tables.storage_options
    world.commit("g1", 0, 5)
    with running(world.config(), rests=False) as job:
        job.wait(lambda: world.rows() == world.commits, what="the first commit")
        beat = heartbeat.read(root, options)
        assert beat is not None
        assert not beat.is_stopped

        # Of a store that is busy delta-rs asks again for a minute.
        proxy.refuse_writes(403, "AuthorizationPermissionMismatch")
        world.commit("g2", 1, 7)
        job.wait(lambda: any(_WAITS in line for line in job.messages), what="the driver says that it waits")
        assert proxy.take_writes() > 0
        job.wait(lambda: world.rows() == world.commits, what="the commit of the outage")
        job.wait(
            lambda: any(_GOES_ON in line for line in job.messages), what="the driver says that it goes on"
        )

    assert not any("Traceback" in line for line in job.messages)
    assert world.groups() == world.named
    ended = heartbeat.read(root, options)
    assert ended is not None
    assert ended.is_stopped


def test_driver_whose_term_is_over_writes_nothing(world: StoredJob) -> None:
    world.assert_old_term_writes_nothing()


def test_backup_and_commands_read_the_container(world: StoredJob, tmp_path: Path) -> None:
    world.assert_backup_is_whole(tmp_path / "copy")
    (tmp_path / "lagwise.toml").write_text(world.toml(), encoding="utf-8")

    lag, sql = (
        CliRunner().invoke(app, [*command, "--config", str(tmp_path / "lagwise.toml"), *more])
        for command, more in ((["lag"], ["-o", "csv"]), (["sql"], ["SELECT 1"]))
    )

    assert lag.exit_code == 0, lag.output
    assert "g2" in lag.stdout
    assert sql.exit_code != 0
    assert "Hadoop's Azure client" in f"{sql.output}{sql.exception}"


def test_each_commit_of_two_writers_lands_once(store: AzureStore) -> None:
    uri = f"az://{CONTAINER}/raced"
    write_deltalake(uri, pa.table({"x": ["first"]}), storage_options=store.options)

    def commit(writer: int) -> None:
        for number in range(_COMMITS):
            write_deltalake(
                uri,
                pa.table({"x": [f"{writer}-{number}"]}),
                mode="append",
                storage_options=store.options,
                commit_properties=CommitProperties(max_commit_retries=100),
            )

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(commit, range(2)))

    table = DeltaTable(uri, storage_options=store.options)
    rows = table.to_pyarrow_table()["x"].to_pylist()
    assert table.version() == 2 * _COMMITS
    assert sorted(rows) == sorted(
        ["first", *(f"{writer}-{number}" for writer in range(2) for number in range(_COMMITS))]
    )


def test_account_in_the_address_is_the_account_of_files_and_commits(store: AzureStore) -> None:
    """Whichever account the options name."""
    options = store.options | {"AZURE_STORAGE_ACCOUNT_NAME": "another"}
    root = f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net/addressed"
    write_deltalake(f"{root}/t", pa.table({"x": ["a"]}), storage_options=options)

    assert Tables(root, options).folder("t").get_file_info("_delta_log").type.name == "Directory"
