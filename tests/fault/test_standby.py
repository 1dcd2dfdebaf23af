"""Two drivers on the same tables, each restarted by a supervisor as a standby: one works, one waits, nobody flutters."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from pipeline.config.model import Config
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.tables.owner import heartbeat
from tests.support.job.job import read_table, write_config
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(1800)

_DRIVER = Path(__file__).with_name("standby.py")
_PATIENCE_S = 12
_WITHIN_S = 300
_FENCED = 4


class Supervised:
    """A driver that is started again as often as it ends, each with a process group of its own."""

    def __init__(self, config_file: Path) -> None:
        self.statuses: list[int] = []
        self._command = [sys.executable, str(_DRIVER), str(config_file), str(_PATIENCE_S)]
        self._ended = threading.Event()
        self._process = self._start()
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        self._thread.start()

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(self._command, start_new_session=True)

    def _supervise(self) -> None:
        while True:
            status = self._process.wait()
            if self._ended.is_set():
                return
            self.statuses.append(status)
            self._process = self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, number: signal.Signals) -> None:
        """Signal the driver and its JVM."""
        os.killpg(self.pid, number)

    def end(self) -> None:
        self._ended.set()
        os.killpg(self.pid, signal.SIGKILL)
        self._thread.join(60)


class Pair:
    """Both, and what the tables say of them."""

    def __init__(self, config: Config, config_file: Path) -> None:
        self.config = config
        self.both = [Supervised(config_file), Supervised(config_file)]

    def owner(self) -> Supervised:
        """The one whose process owns the tables, when its first batch is written."""
        found: list[Supervised] = []

        def owns() -> bool:
            beat = heartbeat.read(self.config.tables.root, {})
            pid = int(beat.owner.split("/")[1]) if beat and not beat.is_stopped else None
            found[:] = [one for one in self.both if one.pid == pid]
            return bool(found) and self.term() > 0 and self.has_batch_of(self.term())

        wait_until(owns, what="an owner with a batch", within_s=_WITHIN_S)
        return found[0]

    def other(self, one: Supervised) -> Supervised:
        return next(each for each in self.both if each is not one)

    def term(self) -> int:
        try:
            rows = read_table(self.config, "planner_state")
        except TableNotFoundError:
            return 0
        return max((int(row["term"]) for row in rows), default=0)

    def version(self) -> int:
        return int(self._table().version())

    def _table(self) -> DeltaTable:
        return DeltaTable(f"{self.config.tables.root}/partition_lag")

    def has_batch_of(self, term: int) -> bool:
        # A number above 0 within the term is a batch.
        return (self._table().transaction_version("lagwise") or 0) > term << 32

    def batches_pass(self, count: int) -> None:
        wanted = self.version() + count
        wait_until(lambda: self.version() >= wanted, what=f"{count} batches", within_s=_WITHIN_S)


@pytest.fixture
def pair(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[Pair]:
    file = tmp_path / "lagwise.toml"
    both = Pair(write_config(file, broker.bootstrap_servers, tmp_path / "tables"), file)
    yield both
    for one in both.both:
        one.end()


def test_supervised_pair_hands_over_when_the_owner_freezes_and_when_it_stops_and_never_else(
    pair: Pair,
) -> None:
    first = pair.owner()
    second = pair.other(first)
    first_term = pair.term()
    assert second.statuses == []

    first.tell(signal.SIGSTOP)
    wait_until(lambda: pair.term() > first_term, what="the standby's take-over", within_s=_WITHIN_S)
    first.tell(signal.SIGCONT)
    wait_until(lambda: first.statuses, what="the end of the driver that was frozen", within_s=_WITHIN_S)
    assert first.statuses == [_FENCED]
    assert pair.owner() is second

    second_term = pair.term()
    pair.batches_pass(10)
    assert (pair.term(), first.statuses, second.statuses) == (second_term, [_FENCED], [])

    os.kill(second.pid, signal.SIGTERM)
    wait_until(lambda: second.statuses, what="a clean stop", within_s=_WITHIN_S)
    # It is named as the owner a moment before its term is written.
    wait_until(lambda: pair.term() > second_term, what="the term after a clean stop", within_s=_WITHIN_S)
    assert pair.owner() is first
    third_term = pair.term()
    pair.batches_pass(3)
    assert (pair.term(), first.statuses, second.statuses) == (third_term, [_FENCED], [0])
    assert third_term > second_term

    first.tell(signal.SIGKILL)
    wait_until(lambda: pair.term() > third_term, what="the take-over after a kill", within_s=_WITHIN_S)
    assert pair.owner() in pair.both
