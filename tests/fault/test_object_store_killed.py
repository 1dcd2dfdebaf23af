"""Tables in an S3 bucket, or a container of Azure, and a driver that is killed again and again: behind steps, and while the store answers it.

What the tables say in the end is compared with a run over the same topic, with tables in a folder, that nobody
disturbed.
"""

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.brokers.traffic import Traffic, control_records
from tests.support.job.killed_drivers import KilledDrivers
from tests.support.job.undisturbed import (
    assert_groups_are_told,
    assert_nothing_doubled,
    assert_one_content_per_epoch,
    assert_same_state,
)
from tests.support.spark.azure_store import CONTAINER, azure_store
from tests.support.spark.object_store import BUCKET, object_store
from tests.support.spark.store_proxy import StoreProxy
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(2400)

_DEADLINE_S = 300
_BEHIND_STEPS = (
    ("store_topic_offsets", "first"),
    ("store_groups", "planning"),
    ("store_lag", "first"),
    ("make_plans", "planning"),
    ("store_history", "planning"),
    ("record_decisions", "planning"),
    ("publish_plans", "planning"),
)
_UNANSWERED = ("topic_offsets", "partition_lag", "plan_state")
"""Tables to which a commit is made whose answer does not reach the driver, which is killed at that moment."""


def _killed_when(drivers: KilledDrivers, happens: Callable[[], bool], what: str) -> int | None:
    driver = drivers.start("as long as it lives", "never")
    wait_until(happens, what=what, within_s=_DEADLINE_S)
    os.killpg(driver.pid, signal.SIGKILL)
    return drivers.ended(driver)


def _killed_while_the_store_answers(drivers: KilledDrivers, proxy: StoreProxy, table: str) -> int | None:
    proxy.lose_answers(f"/{table}/_delta_log/")
    return _killed_when(drivers, lambda: proxy.answers_to_lose == 0, f"a commit to {table}")


def _killed_once_a_plan_is_out(drivers: KilledDrivers) -> int | None:
    """The drivers before ended in their first batches, which repeat a batch of another and so send nothing."""
    return _killed_when(
        drivers, lambda: any(control_records(drivers.bootstrap)), "a plan on the control topic"
    )


_STORES = {"s3": (object_store, f"s3://{BUCKET}/killed"), "azure": (azure_store, f"az://{CONTAINER}/killed")}


@pytest.fixture(scope="module", params=_STORES)
def killed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KilledDrivers]:
    folder, (started, root) = tmp_path_factory.mktemp("killed"), _STORES[request.param]
    with (
        started(tmp_path_factory.mktemp("store")) as store,
        pytest.MonkeyPatch.context() as environment,
        StoreProxy(store.port) as proxy,
        small_broker() as broker,
    ):
        for name, value in store.options_by(proxy.endpoint).items():
            environment.setenv(name, value)
        bootstrap = broker.bootstrap_servers
        create_offsets_topic(bootstrap)
        drivers = KilledDrivers(
            bootstrap,
            root,
            folder / "calm",
            within_s=_DEADLINE_S,
            checkpoint=folder / "checkpoint",
        )
        with Traffic(bootstrap) as traffic:
            for step, when in _BEHIND_STEPS:
                drivers.statuses.append(drivers.ended(drivers.start(step, when)))
                traffic.disturb()
            drivers.statuses.append(_killed_once_a_plan_is_out(drivers))
            for table in _UNANSWERED:
                drivers.statuses.append(_killed_while_the_store_answers(drivers, proxy, table))
                traffic.disturb()
        drivers.run_to_the_end()
        yield drivers


def test_every_driver_was_killed_and_the_last_ones_ended(killed: KilledDrivers) -> None:
    assert killed.statuses == [-signal.SIGKILL] * 11
    assert killed.last_statuses == (0, 0)


def test_store_has_every_commit_every_member_and_every_order(killed: KilledDrivers) -> None:
    assert_same_state(killed.root, killed.calm)


def test_store_has_no_row_and_no_decision_twice(killed: KilledDrivers) -> None:
    assert_nothing_doubled(killed.root)


def test_history_of_groups_in_the_store_ends_with_what_they_are(killed: KilledDrivers) -> None:
    assert_groups_are_told(killed.root)


def test_no_epoch_has_two_contents(killed: KilledDrivers) -> None:
    assert_one_content_per_epoch(killed.root, control_records(killed.bootstrap))
