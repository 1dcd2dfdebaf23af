"""The driver killed with SIGKILL behind every step, twice, under traffic, and started again each time.

What the tables say in the end is compared with a run over the same topic that nobody disturbed.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.brokers.traffic import Traffic, control_records
from tests.support.job.steps import STEP_NAMES
from tests.support.job.undisturbed import (
    assert_groups_are_told,
    assert_nothing_doubled,
    assert_one_content_per_epoch,
    assert_same_state,
)

pytestmark = pytest.mark.timeout(3600)

_DRIVER = Path(__file__).with_name("driver.py")
_DEADLINE_S = 600
_KILLS = [(step, when) for when in ("first", "planning") for step in STEP_NAMES]


class Disturbed:
    """All the kills, then one run to the end, then one run over the same topic without a kill."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.root, self.calm = str(folder / "disturbed"), str(folder / "calm")
        self.statuses: list[tuple[str, int]] = []
        with Traffic(bootstrap) as traffic:
            for step, when in _KILLS:
                self.statuses.append((step, self._drive(self.root, step, when)))
                traffic.disturb()
        self.ended = self._drive(self.root, "none", "never")
        self.undisturbed = self._drive(self.calm, "none", "never")

    def _drive(self, root: str, step: str, when: str) -> int:
        command = [sys.executable, str(_DRIVER), root, self.bootstrap, step, when]
        process = subprocess.Popen(command, start_new_session=True)
        try:
            return process.wait(_DEADLINE_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disturbed]:
    with small_broker() as broker:
        create_offsets_topic(broker.bootstrap_servers)
        yield Disturbed(broker.bootstrap_servers, tmp_path_factory.mktemp("fault"))


def test_every_driver_died_where_it_was_told_to(disturbed: Disturbed) -> None:
    assert disturbed.statuses == [(step, -signal.SIGKILL) for step, _ in _KILLS]
    assert (disturbed.ended, disturbed.undisturbed) == (0, 0)
    assert len(_KILLS) == 34


def test_no_commit_no_tombstone_and_no_member_is_lost(disturbed: Disturbed) -> None:
    assert_same_state(disturbed.root, disturbed.calm)


def test_no_row_is_doubled_and_no_decision_made_twice(disturbed: Disturbed) -> None:
    assert_nothing_doubled(disturbed.root)


def test_history_of_groups_ends_with_what_they_are(disturbed: Disturbed) -> None:
    assert_groups_are_told(disturbed.root)
    assert_groups_are_told(disturbed.calm)


def test_no_epoch_has_two_contents(disturbed: Disturbed) -> None:
    assert_one_content_per_epoch(disturbed.root, control_records(disturbed.bootstrap))
