"""The driver killed with SIGKILL while one broker is a black hole, and started again each time: nothing is lost.

Commits, deletions and acknowledgements go on being written on that broker, past its proxy. What the tables say in the
end is compared with a run over the same topics that nobody disturbed.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from assignor.protocol.kafka.offsets import encode_group_metadata_key
from tests.fault.blind_driver import PARTITION
from tests.support.brokers.broker import OFFSETS_TOPIC, produce
from tests.support.brokers.cluster import ProxiedCluster, create_replicated_topics, proxied_cluster
from tests.support.brokers.inject import RawRecord, commit_record, inject, offsets_partition
from tests.support.brokers.traffic import talk
from tests.support.groups.group_records import group_record, member
from tests.support.job.undisturbed import COMMIT, assert_nothing_doubled, assert_same_state, rows
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(3600)

_DRIVER = Path(__file__).with_name("blind_driver.py")
_DEADLINE_S = 600
_UNREACHABLE = 2
_ORDERS = "orders"
_PLACED = {
    OFFSETS_TOPIC: [[1], [_UNREACHABLE], [3], [1]],
    "lagwise.assignments": [[1]],
    "lagwise.acks": [[_UNREACHABLE]],
    "lagwise.commands": [[1]],
}
_KILLS = [
    # What this one has read cannot be read again by the next one, which does the batch again without it.
    ("store_topic_offsets", "reading"),
    ("store_lag", "first"),
    *((step, "blind") for step in ("settle_offset", "settle", "store_groups", "store_lag")),
    # The broker falls silent between choosing and reading.
    ("store_lag", "halted"),
]


def _group_in(prefix: str, partition: int) -> str:
    return next(name for i in range(1000) if offsets_partition(name := f"{prefix}-{i}") == partition)


BLIND, SEEN = _group_in("steady", PARTITION), _group_in("steady", 0)


class Disturbed:
    """All the kills, then one run to the end, then one run over the same topics without a kill."""

    def __init__(self, proxied: ProxiedCluster, folder: Path) -> None:
        self.root, self.calm = str(folder / "disturbed"), str(folder / "calm")
        self.rounds = count(1)
        self.statuses: list[int] = []
        self._proxied = proxied
        self._internal = proxied.cluster.internal_servers
        proxy = proxied.proxies[_UNREACHABLE]
        self.go_on()
        for step, when in _KILLS:
            if when == "halted":
                proxy.forward()
                self.statuses.append(self._drive_halted(step))
            else:
                self.statuses.append(self._drive(self.root, step, when))
            proxy.black_hole()
            self.go_on()
        self.known_while_blind = committed(self.root)
        proxy.forward()
        self.ended = self._drive(self.root, "none", "never")
        self.undisturbed = self._drive(self.calm, "none", "never")

    def go_on(self) -> None:
        """Groups commit, one comes and one goes, one more member accepts; on all brokers, past the proxies."""
        number = next(self.rounds)
        records = [record for group in (BLIND, SEEN) for record in _of_round(group, number)]
        records += [record for p in (PARTITION, 0) for record in _passing(number, p)]
        inject(self._internal, records)
        produce(self._internal, _ORDERS, dict.fromkeys(range(3), 10))
        talk(self._internal, number)
        self.newest = number

    def _drive_halted(self, step: str) -> int:
        process = self._start(self.root, step, "halted")
        chosen = Path(f"{self.root}.chosen")
        try:
            wait_until(
                lambda: chosen.exists() or process.poll() is not None,
                what="a batch that is to read the partition",
                within_s=_DEADLINE_S,
            )
            self._proxied.proxies[_UNREACHABLE].black_hole()
            Path(f"{self.root}.go").touch()
            return process.wait(_DEADLINE_S)
        finally:
            _end(process)

    def _drive(self, root: str, step: str, when: str) -> int:
        process = self._start(root, step, when)
        try:
            return process.wait(_DEADLINE_S)
        finally:
            _end(process)

    def _start(self, root: str, step: str, when: str) -> "subprocess.Popen[bytes]":
        bootstrap = self._proxied.cluster.bootstrap_servers
        command = [sys.executable, str(_DRIVER), root, bootstrap, step, when]
        return subprocess.Popen(command, start_new_session=True)


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _of_round(group: str, number: int) -> Iterator[RawRecord]:
    """The group is in its next generation, has gone on, and has a commit less, or again."""
    busy = member(f"m-{number}", _ORDERS, assigned={_ORDERS: (0, 1, 2)})
    yield group_record(group, busy, generation=number)
    yield commit_record(group, _ORDERS, 0, number)
    yield commit_record(group, _ORDERS, 1, 2 * number)
    yield commit_record(group, _ORDERS, 2, None if number % 2 else number)


def _passing(number: int, partition: int) -> Iterator[RawRecord]:
    """A group comes, and the one of the round before is deleted."""
    new, old = (_group_in(f"passing-{n}", partition) for n in (number, number - 1))
    yield group_record(new, member("m", _ORDERS, assigned={_ORDERS: (0,)}))
    yield commit_record(new, _ORDERS, 0, number)
    yield commit_record(old, _ORDERS, 0, None)
    yield RawRecord(partition, encode_group_metadata_key(old), None)


def committed(root: str) -> dict[tuple[str, int], int]:
    """Committed offset by group and partition."""
    return {(row[0], row[2]): row[3] for row in rows(root, "partition_lag", COMMIT) if row[3] is not None}


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disturbed]:
    with proxied_cluster() as proxied:
        internal = proxied.cluster.internal_servers
        create_replicated_topics(internal, _PLACED, cleanup_policy="compact")
        create_replicated_topics(internal, {_ORDERS: [[1], [_UNREACHABLE], [3]]})
        yield Disturbed(proxied, tmp_path_factory.mktemp("again"))


def test_every_driver_died_where_it_was_told_to(disturbed: Disturbed) -> None:
    assert disturbed.statuses == [-signal.SIGKILL] * len(_KILLS)
    assert (disturbed.ended, disturbed.undisturbed) == (0, 0)


def test_partition_really_was_away(disturbed: Disturbed) -> None:
    known = disturbed.known_while_blind

    # No driver that could read it lived long enough to write down what it had read.
    assert (BLIND, 0) not in known
    assert known[SEEN, 0] > 1


def test_what_was_written_meanwhile_is_taken_in_whole(disturbed: Disturbed) -> None:
    newest = disturbed.newest
    assert newest % 2 == 0
    of_groups = {
        (group, p): offset for group in (BLIND, SEEN) for p, offset in enumerate((newest, 2 * newest, newest))
    }
    passing = {(_group_in(f"passing-{newest}", p), 0): newest for p in (PARTITION, 0)}

    assert committed(disturbed.root) == {**of_groups, **passing}
    assert_same_state(disturbed.root, disturbed.calm)


def test_nothing_is_doubled(disturbed: Disturbed) -> None:
    assert_nothing_doubled(disturbed.root)
