"""Which driver may write, and that each of its batches writes once."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from pipeline import clock
from pipeline.errors import FencedError, StoreError, TablesChangedError, TablesSetBackError
from pipeline.tables.files import write_file
from pipeline.tables.owner import ownership
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import BY_NAME, TABLES
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.backup import back_up
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.frames import NOW_MS, arrow

STAMP = Stamp(batch_id=3, at_ms=NOW_MS, behind=(1, 2), reason="not read yet")


@pytest.fixture
def root(tmp_path: Path) -> str:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    return str(tmp_path)


def driver(root: str, name: str, *, at_ms: int = NOW_MS) -> Store:
    return ownership.acquire(Store(root, term=0), cluster="local", owner=name, now_ms=at_ms)


def lags(group: str) -> pa.Table:
    return arrow("partition_lag", {"group_id": group})


def files(root: str, group: str) -> list[AddAction]:
    return [write_file(Tables(root), "partition_lag", lags(group), key="group_id")]


def groups_in(store: Store) -> list[str]:
    return sorted(row["group_id"] for row in store.rows("partition_lag", ["group_id"]))


def test_newer_driver_fences_the_older_one_inside_the_write(root: str) -> None:
    old, new = driver(root, "old"), driver(root, "new")

    old.write("partition_lag", lags("of the old one"), STAMP)
    assert groups_in(new) == []
    new.write("partition_lag", lags("of the new one"), STAMP)

    assert groups_in(new) == ["of the new one"]
    ownership.check(new, "new")
    with pytest.raises(FencedError, match="belong to driver new"):
        ownership.check(old, "old")


def test_driver_that_wakes_after_a_restore_is_fenced_by_its_successor(root: str, tmp_path: Path) -> None:
    driver(root, "before the copy")
    copy = tmp_path / "copy"
    list(back_up(Tables(root), copy))
    for name in ("restarted", "restarted again"):
        driver(root, name)
    suspended = driver(root, "suspended")

    for name in BY_NAME:
        shutil.rmtree(Path(root) / name)
        shutil.copytree(copy / name, Path(root) / name)
    successor = driver(root, "successor", at_ms=NOW_MS + 10 * 60_000)
    for number in range(5):
        successor.write("partition_lag", lags("of the successor"), replace(STAMP, batch_id=number))
    suspended.write("partition_lag", lags("of the one that woke"), replace(STAMP, batch_id=9))

    assert groups_in(Store(root, term=0)) == ["of the successor"]
    # It learns that the tables are others, begins again, and learns whose they are.
    with pytest.raises(TablesChangedError):
        ownership.check(suspended, "suspended")
    with pytest.raises(FencedError, match="belong to driver successor"):
        ownership.check(suspended, "suspended")


def test_driver_under_which_an_older_copy_was_restored_is_told_so(root: str, tmp_path: Path) -> None:
    copy, empty = tmp_path / "copy", tmp_path / "empty"
    list(back_up(Tables(root), empty))
    driver(root, "yesterday")
    list(back_up(Tables(root), copy))
    running = driver(root, "today", at_ms=NOW_MS + 60_000)

    for older, whose in ((copy, r"an earlier driver, yesterday \(term 28333334\)"), (empty, "no driver")):
        shutil.rmtree(Path(root) / "planner_state")
        shutil.copytree(older / "planner_state", Path(root) / "planner_state")
        with pytest.raises(TablesChangedError):
            ownership.check(running, "today")
        with pytest.raises(TablesSetBackError, match=f"set back to those of {whose}"):
            ownership.check(running, "today")


def test_driver_of_an_older_version_that_started_later_is_a_successor_though_its_term_is_lower(
    root: str, tmp_path: Path
) -> None:
    list(back_up(Tables(root), tmp_path / "copy"))
    running = driver(root, "host/1/1000")
    shutil.rmtree(Path(root) / "planner_state")
    shutil.copytree(tmp_path / "copy" / "planner_state", Path(root) / "planner_state")
    rolled_back = Store(root, term=2)
    row = {"cluster": "local", "owner": "host/2/2000", "term": 2, "acquired_at": clock.at(NOW_MS)}
    rolled_back.write("planner_state", arrow("planner_state", row), Stamp(batch_id=-1, at_ms=NOW_MS))

    with pytest.raises(TablesChangedError):
        ownership.check(running, "host/1/1000")
    with pytest.raises(FencedError, match="belong to driver host/2/2000"):
        ownership.check(running, "host/1/1000")


def test_term_after_tables_were_set_back_is_above_the_former_one(root: str) -> None:
    assert (
        ownership.acquire(
            Store(root, term=0), cluster="local", owner="again", now_ms=NOW_MS, above=NOW_MS // 60_000 + 9
        ).term
        == NOW_MS // 60_000 + 10
    )


def test_terms_rise_under_a_clock_that_goes_back_and_fit_a_transaction_for_four_thousand_years(
    root: str,
) -> None:
    first, later = driver(root, "first"), driver(root, "later", at_ms=0)

    assert (first.term, later.term) == (NOW_MS // 60_000 + 1, first.term + 1)
    in_the_year_6000 = 4030 * 366 * 24 * 60
    assert in_the_year_6000 * 2**32 < 2**63


@pytest.mark.parametrize("slow_one", ["old", "new"])
def test_drivers_that_write_at_the_same_moment_end_with_the_newer_ones_rows(slow_one: str, root: str) -> None:
    slow, fast = (Store(root, term=term) for term in ((1, 2) if slow_one == "old" else (2, 1)))
    begun, may_end, calls = Event(), Event(), []

    def make() -> list[AddAction]:
        calls.append("made")
        begun.set()
        assert may_end.wait(60)
        return files(root, "of the slow one")

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(slow.write_files, "partition_lag", make, STAMP)
        assert begun.wait(60)
        fast.write_files("partition_lag", lambda: files(root, "of the fast one"), STAMP)
        may_end.set()
        writing.result()

    assert groups_in(fast) == ["of the fast one" if slow_one == "old" else "of the slow one"]
    assert calls == ["made"]


@pytest.mark.parametrize("looked", ["after", "before"])
def test_term_is_never_made_known_after_a_later_one(looked: str, root: str) -> None:
    old, new = (Store(root, term=term) for term in (1, 2))
    if looked == "before":
        old.highest_term()
        old.look()
    new.touch()

    old.touch()

    seen = [DeltaTable(new.path(table.name)).transaction_version("lagwise") for table in TABLES]
    assert seen == [2 * 2**32] * len(TABLES)


def test_tables_of_another_cluster_are_refused(root: str) -> None:
    driver(root, "first")

    with pytest.raises(StoreError, match="belong to cluster 'local', and this driver runs for 'other'"):
        ownership.acquire(Store(root, term=0), cluster="other", owner="second", now_ms=NOW_MS)


def test_files_of_a_batch_that_runs_twice_under_one_term_are_made_once(root: str) -> None:
    store = driver(root, "twice")
    made: list[str] = []

    def make(group: str) -> list[AddAction]:
        made.append(group)
        return files(root, group)

    for group in ("first", "second"):
        store.write_files("partition_lag", lambda group=group: make(group), STAMP)  # type: ignore[misc]
    store.write_files("partition_lag", lambda: make("third"), replace(STAMP, batch_id=4))

    assert made == ["first", "third"]
    assert groups_in(store) == ["third"]
    assert store.stamp("partition_lag") == replace(STAMP, batch_id=4)


def test_table_without_rows_is_written_with_its_stamp(root: str) -> None:
    store = driver(root, "empty")
    store.write_files("partition_lag", lambda: files(root, "g"), STAMP)

    store.write_files("partition_lag", list, replace(STAMP, batch_id=4))

    assert groups_in(store) == []
    assert store.stamp("partition_lag") == replace(STAMP, batch_id=4)


def test_table_that_no_batch_wrote_has_no_stamp(root: str) -> None:
    assert driver(root, "fresh").stamp("consumer_groups") is None
