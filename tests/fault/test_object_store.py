"""Tables in an S3 bucket: a store that makes commits and loses the answers to them.

Nothing is lost, nothing is written twice, and no term writes after a later one. Credentials come from the environment.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pipeline.config.model import Config, TablesConfig
from pipeline.tables.schemas import TABLES
from tests.support.brokers.broker import small_broker
from tests.support.job.forgetting import ForgetfulJob
from tests.support.job.job import RunningJob, running
from tests.support.job.transactions import assert_one_owner_after_the_other, terms
from tests.support.job.undisturbed import assert_nothing_doubled
from tests.support.spark.object_store import BUCKET, ObjectStore, object_store
from tests.support.spark.store_proxy import StoreProxy

pytestmark = pytest.mark.timeout(2400)

_WRITTEN_BY_BATCHES = ("topic_offsets", "partition_lag", "consumer_groups")


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
