"""The driver killed with SIGKILL behind every step, twice, under traffic, and started again each time.

What the tables say in the end is compared with a run over the same topic that nobody disturbed.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pipeline.batch import STEPS
from pipeline.embedded import EmbeddedBroker
from tests.fault.traffic import Traffic, control_records
from tests.support.broker import create_offsets_topic, small_broker

_DRIVER = Path(__file__).with_name("driver.py")
_DEADLINE_S = 240
_KILLS = [(step.__name__, batch) for batch in (1, 2) for step in STEPS]

_COMMIT = ("group_id", "topic", "partition", "committed_offset", "commit_position", "leader_epoch")


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Disturbed"]:
    """Twenty kills, then one run to the end, then one run over the same topic without a kill."""
    with small_broker() as broker:
        create_offsets_topic(broker.bootstrap_servers)
        run = Disturbed(broker, tmp_path_factory.mktemp("fault"))
        run.disturb()
        yield run


class Disturbed:
    def __init__(self, broker: EmbeddedBroker, folder: Path) -> None:
        self.bootstrap = broker.bootstrap_servers
        self.root, self.calm = str(folder / "disturbed"), str(folder / "calm")
        self.statuses: list[tuple[str, int]] = []

    def disturb(self) -> None:
        with Traffic(self.bootstrap) as traffic:
            for step, batch in _KILLS:
                self.statuses.append((step, self._drive(self.root, step, batch)))
                traffic.disturb()
        self.ended = self._drive(self.root, "none", 0)
        self.undisturbed = self._drive(self.calm, "none", 0)

    def _drive(self, root: str, step: str, batch: int) -> int:
        command = [sys.executable, str(_DRIVER), root, self.bootstrap, step, str(batch)]
        process = subprocess.Popen(command, start_new_session=True)
        try:
            return process.wait(_DEADLINE_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

    def rows(self, table: str, columns: tuple[str, ...], *, calm: bool = False) -> list[tuple[Any, ...]]:
        root = self.calm if calm else self.root
        read = DeltaTable(f"{root}/{table}").to_pyarrow_table(columns=list(columns)).to_pylist()
        return sorted((tuple(row[name] for name in columns) for row in read), key=repr)


def test_every_driver_died_where_it_was_told_to(disturbed: Disturbed) -> None:
    assert disturbed.statuses == [(step, -signal.SIGKILL) for step, _ in _KILLS]
    assert (disturbed.ended, disturbed.undisturbed) == (0, 0)
    assert len(_KILLS) == 20


def test_no_commit_and_no_tombstone_is_lost(disturbed: Disturbed) -> None:
    rows = disturbed.rows("partition_lag", _COMMIT)

    assert rows == disturbed.rows("partition_lag", _COMMIT, calm=True)
    assert len(rows) > 10


def test_groups_and_their_members_are_those_of_an_undisturbed_run(disturbed: Disturbed) -> None:
    columns = ("group_id", "group_type", "state", "assignor", "generation", "members", "group_position")

    assert disturbed.rows("consumer_groups", columns) == disturbed.rows("consumer_groups", columns, calm=True)


def test_no_history_row_is_doubled(disturbed: Disturbed) -> None:
    rows = disturbed.rows("lag_history", ("group_id", "topic", "partition", "updated_at"))

    assert max(Counter(rows).values()) == 1


def test_no_epoch_has_two_contents(disturbed: Disturbed) -> None:
    decided = [
        r for r in disturbed.rows("recommendations", ("group_id", "epoch", "record")) if r[1] is not None
    ]
    sent = [(group, epoch, value) for group, epoch, value in control_records(disturbed.bootstrap)]
    contents: dict[tuple[str, int], set[str]] = {}
    for group, epoch, value in (*decided, *sent):
        contents.setdefault((group, epoch), set()).add(value)

    assert all(len(values) == 1 for values in contents.values())
    assert {(group, epoch) for group, epoch, _ in sent} == {(group, epoch) for group, epoch, _ in decided}
    assert all(json.loads(value)["epoch"] == epoch for _, epoch, value in sent)
    assert len(sent) > 10


def test_a_decision_is_never_made_twice_for_one_batch(disturbed: Disturbed) -> None:
    rows = disturbed.rows("recommendations", ("group_id", "created_at"))

    assert max(Counter(rows).values()) == 1
