"""Spark's Python processes killed with SIGKILL under traffic: the one that chooses what is read, and those of tasks.

The driver itself lives through all of it. What its tables say in the end is compared with an undisturbed run.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from pipeline.clock import now_ms
from pipeline.tables.owner import heartbeat
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.brokers.traffic import Traffic, control_records
from tests.support.job.undisturbed import (
    assert_nothing_doubled,
    assert_one_content_per_epoch,
    assert_same_state,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(1800)

_DRIVER = Path(__file__).with_name("driver.py")
_ENDED_S, _BATCHES_S = 600, 240
_PLANNER, _WORKERS = "python_streaming_source_runner", "pyspark.worker"
_PLANNERS_KILLED, _ROUNDS = 4, 40
_EVERY_S = 0.3
_SILENT_S = 300


def python_of(session: int, module: str) -> list[int]:
    """Process ids of a session's Python processes that run a module."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text(encoding="utf-8", errors="replace")
            if module in command and "java" not in command.partition("\0")[0]:
                found += [int(folder.name)] if os.getsid(int(folder.name)) == session else []
        except OSError:
            continue
    return found


def kill(pids: list[int]) -> int:
    """How many of them were still there."""
    killed = 0
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        killed += 1
    return killed


class Driven:
    """Drivers over the tables of a folder, and what they say."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.root = str(folder / "disturbed")
        self.said = folder / "stderr"

    def start(self, root: str, step: str, when: str) -> "subprocess.Popen[bytes]":
        with self.said.open("ab") as said:
            return subprocess.Popen(
                [sys.executable, str(_DRIVER), root, self.bootstrap, step, when],
                start_new_session=True,
                stderr=said,
            )

    def wait_for_batches(self, process: "subprocess.Popen[bytes]", count: int) -> None:
        """Return when the table has so many more versions."""
        before = self._written()
        wait_until(
            lambda: self._written() >= before + count or process.poll() is not None,
            what=f"{count} more batches",
            within_s=_BATCHES_S,
            every_s=_EVERY_S,
        )
        assert process.poll() is None, self.said.read_text(encoding="utf-8")[-4000:]

    def _written(self) -> int:
        try:
            return DeltaTable(f"{self.root}/partition_lag").version()
        except TableNotFoundError:
            return -1


class Disturbed(Driven):
    """One driver whose Python processes are killed, its end, and a run over the same topic without a kill."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        super().__init__(bootstrap, folder)
        self.calm = str(folder / "calm")
        with Traffic(bootstrap) as traffic:
            process = self.start(self.root, "nothing", "never")
            try:
                self.wait_for_batches(process, 2)
                self.planners = sum(self._kill_planner(process, traffic) for _ in range(_PLANNERS_KILLED))
                self.workers = sum(self._kill_workers(process) for _ in range(_ROUNDS))
                self.wait_for_batches(process, 2)
                process.send_signal(signal.SIGTERM)
                self.status = process.wait(_ENDED_S)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        self.ended = [self.start(root, "none", "never").wait(_ENDED_S) for root in (self.root, self.calm)]

    def _kill_planner(self, process: "subprocess.Popen[bytes]", traffic: Traffic) -> int:
        killed = self._kill(process, _PLANNER)
        traffic.disturb()
        self.wait_for_batches(process, 2)
        return killed

    def _kill_workers(self, process: "subprocess.Popen[bytes]") -> int:
        killed = self._kill(process, _WORKERS)
        self.wait_for_batches(process, 1)
        return killed

    def _kill(self, process: "subprocess.Popen[bytes]", module: str) -> int:
        """Wait for processes that run the module; how many were killed."""
        wait_until(lambda: python_of(process.pid, module) or process.poll() is not None, what=module)
        assert process.poll() is None, self.said.read_text(encoding="utf-8")[-4000:]
        return kill(python_of(process.pid, module))


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disturbed]:
    with small_broker() as broker:
        create_offsets_topic(broker.bootstrap_servers)
        yield Disturbed(broker.bootstrap_servers, tmp_path_factory.mktemp("python"))


def test_driver_goes_on_until_it_is_told_to_end(disturbed: Disturbed) -> None:
    assert disturbed.planners >= _PLANNERS_KILLED
    assert disturbed.workers >= _ROUNDS
    assert (disturbed.status, disturbed.ended) == (0, [0, 0])


def test_query_whose_source_was_killed_is_started_again_and_says_so(disturbed: Disturbed) -> None:
    said = disturbed.said.read_text(encoding="utf-8")

    assert said.count("the query failed and is started again") >= _PLANNERS_KILLED


def test_no_commit_and_no_member_is_lost(disturbed: Disturbed) -> None:
    assert_same_state(disturbed.root, disturbed.calm)


def test_nothing_is_doubled_and_no_epoch_has_two_contents(disturbed: Disturbed) -> None:
    assert_nothing_doubled(disturbed.root)
    assert_one_content_per_epoch(disturbed.root, control_records(disturbed.bootstrap))


class Silent(NamedTuple):
    """What came of a process that chooses batches, when it was stopped for good."""

    is_replaced: bool
    oldest_beat_s: float
    """While no batch began."""
    said: str
    status: int


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Silent]:
    with small_broker() as broker, Traffic(broker.bootstrap_servers):
        create_offsets_topic(broker.bootstrap_servers)
        driven = Driven(broker.bootstrap_servers, tmp_path_factory.mktemp("silent"))
        process = driven.start(driven.root, "nothing", "never")
        ages_s: list[float] = []

        def is_gone(pids: list[int]) -> bool:
            beat = heartbeat.read(driven.root, {})
            assert beat is not None
            ages_s.append((now_ms() - beat.at_ms) / 1000)
            return process.poll() is not None or not {*pids} & {*python_of(process.pid, _PLANNER)}

        try:
            wait_until(lambda: python_of(process.pid, _PLANNER), what=_PLANNER, within_s=_BATCHES_S)
            driven.wait_for_batches(process, 3)
            stopped = python_of(process.pid, _PLANNER)
            assert stopped
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            wait_until(lambda: is_gone(stopped), what="the end of what is silent", within_s=_SILENT_S)
            driven.wait_for_batches(process, 2)
            replaced = python_of(process.pid, _PLANNER)
            process.send_signal(signal.SIGTERM)
            status = process.wait(_ENDED_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        yield Silent(
            is_replaced=bool(stopped and replaced) and not {*stopped} & {*replaced},
            oldest_beat_s=max(ages_s),
            said=driven.said.read_text(encoding="utf-8"),
            status=status,
        )


def test_process_that_chooses_batches_and_is_silent_is_killed_and_another_one_goes_on(silent: Silent) -> None:
    assert silent.is_replaced
    assert "the process that chooses batches hangs and is killed" in silent.said
    assert silent.said.count("the query failed and is started again") == 1
    assert silent.status == 0


def test_heartbeat_goes_on_while_no_batch_is_chosen(silent: Silent) -> None:
    assert silent.oldest_beat_s < 3 * heartbeat.BEAT_EVERY_S
