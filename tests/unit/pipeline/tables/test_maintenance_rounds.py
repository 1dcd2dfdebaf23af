"""A round of maintenance is worked off beside batches, in the time that they leave."""

import math
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from pipeline.tables.schemas import TABLES, Table
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep import maintenance
from pipeline.tables.upkeep.creation import create_tables
from pipeline.tables.upkeep.maintenance import Kept, Round
from tests.support.job.frames import NOW_MS, arrow, at
from tests.support.job.maintenance import run

NOWHERE = Kept(store=Store("nowhere", term=0), keep_days=30)
ROUND = [
    *(f"{doing} {one.name}" for one in TABLES if not one.is_latest for doing in ("expire", "compact")),
    *(f"clean {one.name}" for one in TABLES),
]


class Slices:
    """Stand for the work on the tables; each takes some seconds of a clock that nothing else moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self.takes_s: Callable[[str], float] = lambda _table: 0.5
        self.fails: set[str] = set()
        monkeypatch.setattr(maintenance.time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(
            maintenance, "_WORK", dict.fromkeys(("expire", "compact", "fill", "clean"), self.work)
        )

    def work(self, _kept: Kept, table: Table, _now: datetime) -> int:
        self.now_s += self.takes_s(table.name)
        if table.name in self.fails:
            raise ValueError("no such column")
        return 0


@pytest.fixture
def slices(monkeypatch: pytest.MonkeyPatch) -> Slices:
    return Slices(monkeypatch)


def worked(one: Round, *, spare_s: float, kept: Kept = NOWHERE) -> list[str]:
    """What one batch has worked off."""
    begun: list[str] = []
    one.work(kept, at_ms=NOW_MS, spare_s=spare_s, begins=begun.append)
    return begun


@pytest.mark.usefixtures("slices")
def test_round_that_is_cut_short_goes_on_with_the_next_batch_and_leaves_nothing_out() -> None:
    one = Round()
    one.begin()

    # How long a slice takes is not known before it has run once.
    assert [worked(one, spare_s=30) for _ in ROUND] == [[doing] for doing in ROUND]
    one.begin()
    by_batch = [worked(one, spare_s=30) for _ in ROUND]

    assert [doing for batch in by_batch for doing in batch] == ROUND
    assert by_batch[0] == ROUND[:3]


def test_maintenance_beside_a_batch_takes_two_seconds_at_most(slices: Slices) -> None:
    one = Round()
    for _ in range(3):
        one.begin()
        while True:
            begun_s = slices.now_s
            if not worked(one, spare_s=30):
                break
            assert slices.now_s - begun_s <= 2.0


def test_no_slice_begins_that_could_delay_the_next_batch(slices: Slices) -> None:
    slices.takes_s = lambda table: 4.0 if table == "lag_history" else 0.1
    one = Round()
    one.begin()
    while worked(one, spare_s=math.inf):
        pass
    assert slices.now_s > 0
    one.begin()

    assert worked(one, spare_s=0) == []
    assert worked(one, spare_s=-3) == []
    # It may take twice as long as last time.
    assert worked(one, spare_s=7.9) == []
    assert worked(one, spare_s=8.1) == ["expire lag_history"]


@pytest.mark.usefixtures("slices")
def test_round_that_found_no_time_until_the_next_was_due_has_a_slice_a_batch() -> None:
    one = Round()
    one.begin()
    assert worked(one, spare_s=0) == []

    one.begin()
    by_batch = [worked(one, spare_s=0) for _ in ROUND]

    assert by_batch == [[doing] for doing in ROUND]
    one.begin()
    assert worked(one, spare_s=0) == []


def test_slice_that_fails_keeps_the_others_from_nothing(
    slices: Slices, caplog: pytest.LogCaptureFixture
) -> None:
    slices.fails = {"recommendations"}
    one = Round()
    one.begin()

    begun = [doing for _ in ROUND for doing in worked(one, spare_s=30)]

    assert begun == ROUND
    assert "maintenance failed" in caplog.messages


def test_slice_that_cannot_reach_the_tables_is_done_again(
    slices: Slices, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Round()
    one.begin()
    monkeypatch.setattr(maintenance, "trouble_of", str)
    slices.fails = {"lag_history"}
    with pytest.raises(ValueError, match="no such column"):
        worked(one, spare_s=30)

    slices.fails = set()
    assert worked(one, spare_s=30)[0] == ROUND[0]


def history(root: Path, *minutes: int) -> Store:
    """Tables whose history has so many commits, each of a row, at these minutes after noon."""
    create_tables(str(root), retention_hours=1, storage_options={})
    store = Store(str(root), term=1)
    for number, minute in enumerate(minutes):
        row = {"date": at(60 * minute).date(), "updated_at": at(60 * minute), "partition": number}
        store.write("lag_history", arrow("lag_history", row), Stamp(batch_id=number, at_ms=NOW_MS))
    return store


def content(root: Path) -> tuple[int, list[int]]:
    """Files of the newest version of the history, and its rows."""
    table = DeltaTable(str(root / "lag_history"))
    return len(table.file_uris()), sorted(table.to_pyarrow_table()["partition"].to_pylist())


@pytest.mark.parametrize("killed_after", range(4))
def test_round_that_was_killed_between_two_slices_is_done_by_the_next_process(
    tmp_path: Path, killed_after: int
) -> None:
    root = tmp_path / "killed"
    history(root, -60 * 24 * 40, 1, 2, 3)
    kept = Kept(store=Store(str(root), term=0), keep_days=30)
    before = Round()
    before.begin()
    done = [doing for _ in range(killed_after) for doing in worked(before, spare_s=math.inf, kept=kept)]
    assert done == ROUND[:killed_after]

    # Another process knows nothing of it.
    run(str(root), at_ms=NOW_MS, keep_days=30)

    history(tmp_path / "undisturbed", -60 * 24 * 40, 1, 2, 3)
    run(str(tmp_path / "undisturbed"), at_ms=NOW_MS, keep_days=30)
    assert content(root) == content(tmp_path / "undisturbed") == (1, [1, 2, 3])


def test_history_is_merged_between_rounds_as_soon_as_small_files_fill_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(tmp_path, 1, 2, 3)
    kept = Kept(store=Store(str(tmp_path), term=0), keep_days=30)
    one = Round()

    one.begin_filling()
    one.begin_filling()
    assert worked(one, spare_s=math.inf, kept=kept) == ["fill lag_history"]
    assert content(tmp_path)[0] == 3

    size = sum(DeltaTable(str(tmp_path / "lag_history")).get_add_actions()["size_bytes"].to_pylist())
    monkeypatch.setattr(maintenance, "_FILE_BYTES", size)
    one.begin_filling()
    worked(one, spare_s=math.inf, kept=kept)
    assert content(tmp_path) == (1, [0, 1, 2])


def test_file_that_is_nearly_full_is_not_rewritten_for_each_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = history(tmp_path, 1, 2, 3)
    run(str(tmp_path), at_ms=NOW_MS, keep_days=30)
    row = {"date": at(240).date(), "updated_at": at(240), "partition": 3}
    store.write("lag_history", arrow("lag_history", row), Stamp(batch_id=3, at_ms=NOW_MS))
    sizes = DeltaTable(str(tmp_path / "lag_history")).get_add_actions()["size_bytes"].to_pylist()
    monkeypatch.setattr(maintenance, "_FILE_BYTES", max(sizes) + 1)
    compacted: list[Table] = []
    monkeypatch.setattr(maintenance, "_compact", lambda _kept, table, _now: compacted.append(table) or 0)
    one = Round()

    one.begin_filling()
    worked(one, spare_s=math.inf, kept=Kept(store=Store(str(tmp_path), term=0), keep_days=30))

    assert compacted == []
