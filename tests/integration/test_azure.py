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
from pipeline.tables.schemas import TABLES
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.backup import back_up
from tests.support.brokers.broker import small_broker
from tests.support.job.frames import NOW_MS, arrow
from tests.support.job.job import read_table, running
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
    root, options = world.tables.root, world.tables.storage_options
    term = Store(root, term=0, storage_options=options).highest_term()
    old, new = (Store(root, term=term + more, storage_options=options) for more in (1, 2))
    new.touch()
    version = new.versions(["quarantine"])

    old.write("quarantine", arrow("quarantine", {}), Stamp(batch_id=7, at_ms=NOW_MS))

    assert new.versions(["quarantine"]) == version


def test_backup_and_commands_read_the_container(world: StoredJob, tmp_path: Path) -> None:
    tables = Tables(world.tables.root, world.tables.storage_options)
    (tmp_path / "lagwise.toml").write_text(world.toml(), encoding="utf-8")

    copied = {one.name for one in back_up(tables, tmp_path / "copy")}
    lag, sql = (
        CliRunner().invoke(app, [*command, "--config", str(tmp_path / "lagwise.toml"), *more])
        for command, more in ((["lag"], ["-o", "csv"]), (["sql"], ["SELECT 1"]))
    )

    assert copied == {table.name for table in TABLES}
    rows = Tables(str(tmp_path / "copy")).read("partition_lag", columns=["group_id", "partition"]).to_pylist()
    wanted = read_table(world.config(), "partition_lag")
    assert sorted((row["group_id"], row["partition"]) for row in rows) == sorted(
        (row["group_id"], row["partition"]) for row in wanted
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
