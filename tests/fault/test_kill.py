"""The driver killed with SIGKILL behind every step, twice, under traffic, and started again each time.

What the tables say in the end is compared with a run over the same topic that nobody disturbed.
"""

import signal
from collections.abc import Iterator

import pytest

from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.brokers.traffic import Traffic, control_records
from tests.support.job.killed_drivers import KilledDrivers
from tests.support.job.steps import STEP_NAMES
from tests.support.job.undisturbed import (
    assert_groups_are_told,
    assert_nothing_doubled,
    assert_one_content_per_epoch,
    assert_same_state,
)

pytestmark = pytest.mark.timeout(3600)

_KILLS = [(step, when) for when in ("first", "planning") for step in STEP_NAMES]


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KilledDrivers]:
    folder = tmp_path_factory.mktemp("fault")
    with small_broker() as broker:
        bootstrap = broker.bootstrap_servers
        create_offsets_topic(bootstrap)
        drivers = KilledDrivers(bootstrap, str(folder / "disturbed"), folder / "calm", within_s=600)
        with Traffic(bootstrap) as traffic:
            for step, when in _KILLS:
                drivers.statuses.append(drivers.ended(drivers.start(step, when)))
                traffic.disturb()
        drivers.run_to_the_end()
        yield drivers


def test_every_driver_died_where_it_was_told_to(disturbed: KilledDrivers) -> None:
    assert dict(zip(_KILLS, disturbed.statuses, strict=True)) == dict.fromkeys(_KILLS, -signal.SIGKILL)
    assert disturbed.last_statuses == (0, 0)
    assert len(_KILLS) == 36


def test_no_commit_no_tombstone_and_no_member_is_lost(disturbed: KilledDrivers) -> None:
    assert_same_state(disturbed.root, disturbed.calm)


def test_no_row_is_doubled_and_no_decision_made_twice(disturbed: KilledDrivers) -> None:
    assert_nothing_doubled(disturbed.root)


def test_history_of_groups_ends_with_what_they_are(disturbed: KilledDrivers) -> None:
    assert_groups_are_told(disturbed.root)
    assert_groups_are_told(disturbed.calm)


def test_no_epoch_has_two_contents(disturbed: KilledDrivers) -> None:
    assert_one_content_per_epoch(disturbed.root, control_records(disturbed.bootstrap))
