"""A backup is the tables as they were at one moment, whatever the driver does meanwhile."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from deltalake import DeltaTable, TableFeatures

from pipeline.errors import MissingTableError, StoreError
from pipeline.tables.owner import ownership
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import TABLES
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep import backup as module
from pipeline.tables.upkeep.backup import ORDER, back_up
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job import maintenance
from tests.support.job.frames import NOW_MS, arrow, at
from tests.support.job.table_versions import versions_of
from tests.support.waiting import wait_until


@pytest.fixture
def store(tmp_path: Path) -> Store:
    root = str(tmp_path / "tables")
    create_tables(root, retention_hours=1, storage_options={})
    made = ownership.acquire(Store(root, term=0), cluster="local", owner="driver", now_ms=NOW_MS)
    write(made, 0)
    return made


def write(store: Store, batch_id: int) -> None:
    """What a batch leaves in a latest table and in a history."""
    stamp = Stamp(batch_id=batch_id, at_ms=NOW_MS + batch_id)
    store.write("partition_lag", arrow("partition_lag", {"lag": batch_id}), stamp)
    row = {"date": at(0).date(), "lag": batch_id, "updated_at": at(batch_id)}
    store.write("lag_history", arrow("lag_history", row), stamp)


def copied(store: Store, target: Path) -> Store:
    assert [one.name for one in back_up(Tables(store.root), target)] == list(ORDER)
    return Store(str(target), term=0)


def lags(store: Store, name: str) -> list[int]:
    return sorted(row["lag"] for row in store.rows(name, ["lag"]))


def test_every_table_is_in_a_backup_and_the_one_with_the_positions_comes_first() -> None:
    assert sorted(ORDER) == sorted(table.name for table in TABLES)
    assert ORDER[0] == "partition_lag"
    assert ORDER.index("plan_state") < ORDER.index("recommendations")
    assert ORDER.index("consumer_groups") < ORDER.index("group_history")


def test_copy_has_rows_versions_stamps_and_terms(store: Store, tmp_path: Path) -> None:
    write(store, 1)

    copy = copied(store, tmp_path / "copy")

    names = [table.name for table in TABLES]
    assert (lags(copy, "partition_lag"), lags(copy, "lag_history")) == ([1], [0, 1])
    assert versions_of(copy, names) == versions_of(store, names)
    assert copy.stamp("partition_lag") == store.stamp("partition_lag")
    assert copy.highest_term() == store.term
    assert not (tmp_path / "copy.unfinished").exists()


def test_versions_of_a_copy_are_as_old_as_they_were(store: Store, tmp_path: Path) -> None:
    write(store, 1)
    log = Path(store.path("lag_history"), "_delta_log")
    for commit in log.glob("*.json"):
        os.utime(commit, ns=(0, 1_700_000_000_123_000_000 + int(commit.stem) * 10**9))

    copy = Path(copied(store, tmp_path / "copy").path("lag_history"), "_delta_log")

    commits = sorted(file.name for file in log.glob("*.json"))
    assert len(commits) > 2
    assert [(copy / name).stat().st_mtime_ns for name in commits] == [
        (log / name).stat().st_mtime_ns for name in commits
    ]


def test_driver_that_starts_on_a_copy_owns_it_and_goes_on(store: Store, tmp_path: Path) -> None:
    copy = copied(store, tmp_path / "copy")

    create_tables(copy.root, retention_hours=1, storage_options={})
    next_one = ownership.acquire(copy, cluster="local", owner="next", now_ms=NOW_MS)
    write(next_one, 0)

    assert next_one.term == store.term + 1
    assert lags(next_one, "lag_history") == [0, 0]
    assert lags(store, "lag_history") == [0]


def test_copy_of_tables_that_are_written_and_maintained_meanwhile_is_of_one_batch_each(
    store: Store, tmp_path: Path
) -> None:
    stop, batches = Event(), [1]

    def drive() -> None:
        while not stop.is_set():
            write(store, batches[-1])
            if batches[-1] % 5 == 0:
                maintenance.run(store.root, at_ms=NOW_MS, keep_days=1, storage_options={})
            batches.append(batches[-1] + 1)

    driver = Thread(target=drive)
    driver.start()
    try:
        wait_until(lambda: len(batches) > 6, what="batches and maintenance", within_s=60)
        copies = [copied(store, tmp_path / f"copy-{number}") for number in range(3)]
    finally:
        stop.set()
        driver.join()

    for copy in copies:
        (lag,) = lags(copy, "partition_lag")
        stamp = copy.stamp("partition_lag")
        assert stamp is not None
        assert lag == stamp.batch_id
        # Histories may be of later batches, and have no gaps.
        history = lags(copy, "lag_history")
        assert history == list(range(len(history)))
        assert len(history) >= lag


def breaking(monkeypatch: pytest.MonkeyPatch, times: int, how: Callable[[Path], None]) -> None:
    """The first `times` copies of a table's files are spoilt."""
    copy_files, left = module._copy_files, [how] * times

    def spoilt(folder: Any, version: int, sizes: dict[str, int], target: Path) -> None:
        copy_files(folder, version, sizes, target)
        if left:
            left.pop()(target)

    monkeypatch.setattr(module, "_copy_files", spoilt)


def vanish(_target: Path) -> None:
    raise FileNotFoundError


def lose_log(target: Path) -> None:
    """As when maintenance cuts the log behind a checkpoint that was not there yet."""
    (target / "_delta_log" / f"{1:020}.json").unlink()


def lose_end_of_log(target: Path) -> None:
    max((target / "_delta_log").glob("*.json")).unlink()


def shorten(target: Path) -> None:
    next(target.glob("*.parquet")).write_bytes(b"")


@pytest.mark.parametrize("how", [vanish, lose_log, lose_end_of_log, shorten])
def test_table_that_changes_under_the_copy_is_copied_again(
    how: Callable[[Path], None], store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, 2, how)

    copy = copied(store, tmp_path / "copy")

    assert lags(copy, "partition_lag") == [0]


def test_table_that_changes_again_and_again_is_given_up(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, 3, vanish)

    with pytest.raises(
        StoreError, match=r"table partition_lag under .* changes faster than it can be copied"
    ):
        copied(store, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_backup_that_was_cut_short_is_begun_again(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy.unfinished" / "acks").mkdir(parents=True)
    (tmp_path / "copy.unfinished" / "acks" / "half").touch()

    copied(store, tmp_path / "copy")

    assert not (tmp_path / "copy" / "acks" / "half").exists()


def test_second_backup_into_a_folder_is_refused_and_the_first_is_complete(
    store: Store, tmp_path: Path
) -> None:
    target = tmp_path / "new" / "copy"
    first = back_up(Tables(store.root), target)
    names = [next(first).name for _ in ORDER[1:]]

    with pytest.raises(StoreError, match=r"another backup into .*copy is running; wait, or name another"):
        next(back_up(Tables(store.root), target))
    names += [one.name for one in first]

    assert names == list(ORDER)
    assert {one.name for one in target.iterdir()} == set(ORDER)
    assert [one.name for one in target.parent.iterdir()] == ["copy"], "no lock stays behind"


@pytest.mark.parametrize("target", [".", "/"])
def test_folder_that_is_there_is_refused_whatever_its_name(store: Store, target: str) -> None:
    with pytest.raises(StoreError, match="exists already"):
        list(back_up(Tables(store.root), Path(target)))


def test_lock_of_a_backup_that_has_ended_meanwhile_is_none(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, flock = tmp_path / "copy.lock", module.fcntl.flock

    def late(file: Any, how: int) -> None:
        lock.unlink()
        flock(file, how)

    monkeypatch.setattr(module.fcntl, "flock", late)

    with pytest.raises(StoreError, match="another backup"):
        next(back_up(Tables(store.root), tmp_path / "copy"))


def test_backup_whose_tables_are_removed_meanwhile_is_none(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lockless(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(module.fcntl, "flock", lockless)
    first = back_up(Tables(store.root), tmp_path / "copy")
    for _ in ORDER[1:]:
        next(first)
    next(back_up(Tables(store.root), tmp_path / "copy"))

    with pytest.raises(StoreError, match=r"topic_offsets, .* were removed during the backup"):
        list(first)
    assert not (tmp_path / "copy").exists()


def test_folder_that_exists_is_not_written_into(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()

    with pytest.raises(StoreError, match="copy exists already; name a folder that does not"):
        list(back_up(Tables(store.root), tmp_path / "copy"))


def test_table_that_an_earlier_version_has_not_made_is_left_out(store: Store, tmp_path: Path) -> None:
    (tmp_path / "tables" / "group_history").rename(tmp_path / "elsewhere")

    names = [one.name for one in back_up(Tables(store.root), tmp_path / "copy")]

    assert set(ORDER) - set(names) == {"group_history"}


def test_backup_of_nothing_is_none(tmp_path: Path) -> None:
    with pytest.raises(MissingTableError):
        list(back_up(Tables(str(tmp_path)), tmp_path / "copy"))


def test_newer_commits_and_hints_at_newer_checkpoints_are_left_out(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = module._sizes

    def overtaken(handle: DeltaTable) -> dict[str, int]:
        found = sizes(handle)
        if handle.table_uri.rstrip("/").endswith("tables/partition_lag"):
            write(store, 7)
            DeltaTable(store.path("partition_lag")).create_checkpoint()
        return found

    monkeypatch.setattr(module, "_sizes", overtaken)

    copy = copied(store, tmp_path / "copy")

    assert lags(copy, "partition_lag") == [0]
    assert not (tmp_path / "copy" / "partition_lag" / "_delta_log" / "_last_checkpoint").exists()


def test_tables_with_deletion_vectors_are_not_copied_without_them(store: Store, tmp_path: Path) -> None:
    DeltaTable(store.path("lag_history")).alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )

    with pytest.raises(
        StoreError, match=r"table lag_history .* may have deletion vectors, .* restore this table's folder"
    ):
        list(back_up(Tables(store.root), tmp_path / "copy"))

    assert not list(tmp_path.glob("copy*"))
