"""Spark's Python processes killed with SIGKILL under traffic: the one that chooses what is read, and those of tasks.

The driver itself lives through all of it. What its tables say in the end is compared with an undisturbed run.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from tests.support.broker import create_offsets_topic, small_broker
from tests.support.traffic import Traffic, control_records
from tests.support.undisturbed import assert_nothing_doubled, assert_one_content_per_epoch, assert_same_state
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(1800)

_DRIVER = Path(__file__).with_name("driver.py")
_ENDED_S, _BATCHES_S = 600, 240
_PLANNER, _WORKERS = "python_streaming_source_runner", "pyspark.worker"
_PLANNERS_KILLED, _ROUNDS = 4, 40
_EVERY_S = 0.3


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


class Disturbed:
    """One driver whose Python processes are killed, its end, and a run over the same topic without a kill."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.root, self.calm = str(folder / "disturbed"), str(folder / "calm")
        self.said = folder / "stderr"
        with Traffic(bootstrap) as traffic:
            process = self._start(self.root, "nothing", "never")
            try:
                self._wait_for_batches(process, 2)
                self.planners = sum(self._kill_planner(process, traffic) for _ in range(_PLANNERS_KILLED))
                self.workers = sum(self._kill_workers(process) for _ in range(_ROUNDS))
                self._wait_for_batches(process, 2)
                process.send_signal(signal.SIGTERM)
                self.status = process.wait(_ENDED_S)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        self.ended = [self._start(root, "none", "never").wait(_ENDED_S) for root in (self.root, self.calm)]

    def _start(self, root: str, step: str, when: str) -> "subprocess.Popen[bytes]":
        with self.said.open("ab") as said:
            return subprocess.Popen(
                [sys.executable, str(_DRIVER), root, self.bootstrap, step, when],
                start_new_session=True,
                stderr=said,
            )

    def _kill_planner(self, process: "subprocess.Popen[bytes]", traffic: Traffic) -> int:
        killed = self._kill(process, _PLANNER)
        traffic.disturb()
        self._wait_for_batches(process, 2)
        return killed

    def _kill_workers(self, process: "subprocess.Popen[bytes]") -> int:
        killed = self._kill(process, _WORKERS)
        self._wait_for_batches(process, 1)
        return killed

    def _kill(self, process: "subprocess.Popen[bytes]", module: str) -> int:
        """Wait for processes that run the module; how many were killed."""
        wait_until(lambda: python_of(process.pid, module) or process.poll() is not None, what=module)
        assert process.poll() is None, self.said.read_text(encoding="utf-8")[-4000:]
        return kill(python_of(process.pid, module))

    def _wait_for_batches(self, process: "subprocess.Popen[bytes]", count: int) -> None:
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
