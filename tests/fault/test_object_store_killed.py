"""Tables in an S3 bucket, and a driver that is killed again and again: behind steps, and while the store answers it.

What the tables say in the end is compared with a run over the same topic, with tables in a folder, that nobody
disturbed.
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
from tests.support.job.undisturbed import (
    assert_groups_are_told,
    assert_nothing_doubled,
    assert_one_content_per_epoch,
    assert_same_state,
)
from tests.support.spark.object_store import BUCKET, object_store
from tests.support.spark.store_proxy import StoreProxy
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(2400)

_DRIVER = Path(__file__).with_name("driver.py")
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


class Killed:
    """All the kills, then one run to the end, then one run over the same topic without a kill."""

    def __init__(self, bootstrap: str, folder: Path, proxy: StoreProxy) -> None:
        self.bootstrap = bootstrap
        self.root, self.calm = f"s3://{BUCKET}/killed", str(folder / "calm")
        self.statuses: list[int | None] = []
        self._checkpoint = str(folder / "checkpoint")
        self._variables = {**os.environ, "AWS_ENDPOINT_URL": proxy.endpoint}
        with Traffic(bootstrap) as traffic:
            for step, when in _BEHIND_STEPS:
                self.statuses.append(self._ended(self._start(self.root, step, when)))
                traffic.disturb()
            for table in _UNANSWERED:
                proxy.lose_answers(f"/{table}/_delta_log/")
                driver = self._start(self.root, "as long as it lives", "never")
                wait_until(
                    lambda: proxy.answers_to_lose == 0, what=f"a commit to {table}", within_s=_DEADLINE_S
                )
                os.killpg(driver.pid, signal.SIGKILL)
                self.statuses.append(self._ended(driver))
                traffic.disturb()
        self.ended = self._ended(self._start(self.root, "none", "never"))
        self.undisturbed = self._ended(self._start(self.calm, "none", "never"))

    def _start(self, root: str, step: str, when: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, str(_DRIVER), root, self.bootstrap, step, when]
        return subprocess.Popen(
            command if root == self.calm else [*command, self._checkpoint],
            env=self._variables,
            start_new_session=True,
        )

    def _ended(self, driver: "subprocess.Popen[bytes]") -> int | None:
        try:
            return driver.wait(_DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(driver.pid, signal.SIGKILL)
            return None


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    folder = tmp_path_factory.mktemp("killed")
    with (
        object_store(tmp_path_factory.mktemp("store")) as store,
        pytest.MonkeyPatch.context() as environment,
        StoreProxy(store.port) as proxy,
        small_broker() as broker,
    ):
        for name, value in store.options.items():
            environment.setenv(name, value)
        create_offsets_topic(broker.bootstrap_servers)
        yield Killed(broker.bootstrap_servers, folder, proxy)


def test_every_driver_was_killed_and_the_last_ones_ended(killed: Killed) -> None:
    assert killed.statuses == [-signal.SIGKILL] * 10
    assert (killed.ended, killed.undisturbed) == (0, 0)


def test_bucket_has_every_commit_every_member_and_every_order(killed: Killed) -> None:
    assert_same_state(killed.root, killed.calm)


def test_bucket_has_no_row_and_no_decision_twice(killed: Killed) -> None:
    assert_nothing_doubled(killed.root)


def test_history_of_groups_in_the_bucket_ends_with_what_they_are(killed: Killed) -> None:
    assert_groups_are_told(killed.root)


def test_no_epoch_has_two_contents(killed: Killed) -> None:
    assert_one_content_per_epoch(killed.root, control_records(killed.bootstrap))
