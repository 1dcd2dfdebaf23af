"""What a process knows of its tables: nothing is asked twice, and nothing old is written as if it were new."""

import os
import pickle
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction

from pipeline.errors import StoreError, TablesChangedError
from pipeline.tables.files import write_file
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import TABLES
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.table_files import SentTables, TableRows
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.frames import NOW_MS, arrow
from tests.support.job.log_reads import log_reads
from tests.support.job.table_versions import versions_of

NAME = "partition_lag"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    return Store(str(tmp_path), term=1)


def stamp(batch_id: int) -> Stamp:
    return Stamp(batch_id=batch_id, at_ms=NOW_MS)


def lags(*groups: str) -> pa.Table:
    return arrow(NAME, *({"group_id": group} for group in groups))


def groups_in(store: Store) -> list[str]:
    return sorted(store.arrow(NAME, ["group_id"])["group_id"].to_pylist())


def write_by_file(store: Store, group: str, batch_id: int) -> None:
    store.write_files(
        NAME, lambda: [write_file(Tables(store.root), NAME, lags(group), key="group_id")], stamp(batch_id)
    )


@pytest.mark.parametrize("is_in_batch", [False, True])
def test_driver_that_reads_between_look_and_commit_is_fenced_all_the_same(
    store: Store, is_in_batch: bool
) -> None:
    """Were the table looked at again while files are made, the commit would follow what the new driver has written."""
    store.write(NAME, lags("a"), stamp(0))
    if is_in_batch:
        store.look()

    def make() -> list[AddAction]:
        Store(store.root, term=2).write(NAME, lags("of the new one"), stamp(0))
        assert groups_in(store) == ["a"]
        assert store.files([NAME])
        return [write_file(Tables(store.root), NAME, lags("of the old one"), key="group_id")]

    store.write_files(NAME, make, stamp(1))

    assert groups_in(Store(store.root, term=0)) == ["of the new one"]


@pytest.mark.parametrize("by_file", [False, True])
def test_driver_looks_at_a_table_once_a_batch_and_after_its_own_files(store: Store, by_file: bool) -> None:
    store.write(NAME, lags("a"), stamp(0))

    with log_reads() as reads:
        store.look()
        for _ in range(3):
            assert groups_in(store) == ["a"]
        if by_file:
            write_by_file(store, "b", 1)
        else:
            store.write(NAME, lags("b"), stamp(1))
        for _ in range(3):
            assert groups_in(store) == ["b"]
        store.files([NAME])
        store.write(NAME, lags("c"), stamp(2))

    assert reads == {"look": 2 if by_file else 1}
    assert groups_in(Store(store.root, term=0)) == ["c"]


def test_reader_that_was_told_nothing_sees_each_commit_and_opens_nothing_again(store: Store) -> None:
    reader = Store(store.root, term=0)
    assert groups_in(reader) == []

    with log_reads() as reads:
        for number, group in enumerate("ab"):
            store.write(NAME, lags(group), stamp(number))
            assert groups_in(reader) == [group]
            assert reader.stamp(NAME) == reader.stamp(NAME) == stamp(number)

    # Of the writer.
    assert reads["open"] == 1


def test_files_that_are_compacted_between_look_and_commit_are_not_kept_beside_what_replaces_them(
    store: Store,
) -> None:
    """delta-rs takes no compaction for a conflict: an overwrite would leave the compacted rows there."""
    store.write(NAME, lags("a", "b"), stamp(0))
    made: list[AddAction] = []

    def make() -> list[AddAction]:
        DeltaTable(store.path(NAME)).optimize.z_order(["group_id"])
        made.append(write_file(Tables(store.root), NAME, lags("c"), key="group_id"))
        return made

    store.write_files(NAME, make, stamp(1))

    assert groups_in(store) == ["c"]
    assert len(made) == 1


def test_commit_that_would_follow_a_version_which_is_long_gone_is_refused(store: Store) -> None:
    """A driver that slept while its successor worked, and while maintenance cut the log, writes into no gap of it."""
    store.write(NAME, lags("old"), stamp(0))
    store.look()
    new = Store(store.root, term=2)
    for number in range(3):
        new.write(NAME, lags("new"), stamp(number))
    _cut(Path(store.path(NAME)))
    log = Path(store.path(NAME), "_delta_log")
    before = sorted(log.iterdir())

    with pytest.raises(DeltaError, match="version"):
        store.write(NAME, lags("old"), stamp(1))

    assert sorted(log.iterdir()) == before
    store.look()
    store.write(NAME, lags("old"), stamp(1))
    assert groups_in(store) == ["new"]


def _cut(table: Path) -> None:
    """Remove all of a log that is older than its newest version, as maintenance does when hours have passed."""
    handle = DeltaTable(str(table))
    handle.alter.set_table_properties({"delta.logRetentionDuration": "interval 1 seconds"})
    long_ago = time.time() - 1_000_000
    for file in (table / "_delta_log").iterdir():
        os.utime(file, (long_ago, long_ago))
    handle.create_checkpoint()
    handle.cleanup_metadata()


def test_tables_that_were_replaced_under_a_driver_are_told_from_a_defect(
    store: Store, tmp_path: Path
) -> None:
    store.write(NAME, lags("a"), stamp(0))
    store.look()
    shutil.rmtree(tmp_path / NAME)
    create_tables(str(tmp_path), retention_hours=1, storage_options={})

    with pytest.raises(
        TablesChangedError, match="files of the newest version of table partition_lag are gone"
    ):
        store.arrow(NAME, ["group_id"])

    assert groups_in(store) == []


def test_task_reads_the_version_that_it_was_sent_and_no_log(store: Store) -> None:
    store.write(NAME, lags("a", "b"), stamp(0))
    sent = pickle.dumps(SentTables(store.files([NAME, "acks"]), {}))
    store.write(NAME, lags("c"), stamp(1))

    with log_reads() as reads:
        tables = pickle.loads(sent)  # noqa: S301 - from the line above
        rows = tables.read(NAME, columns=["group_id", "not there"])
        assert tables.read("acks", columns=["group_id"]).num_rows == 0

    assert sorted(rows["group_id"].to_pylist()) == ["a", "b"]
    assert rows["not there"].null_count == 2
    assert reads == {}


def test_storage_that_answers_is_heard(store: Store) -> None:
    heard: list[int] = []
    listened = Store(store.root, term=1, on_answer=lambda: heard.append(1))

    listened.write(NAME, lags("a"), stamp(0))
    written = len(heard)
    listened.arrow(NAME, ["group_id"])

    assert 0 < written < len(heard)


def test_driver_without_tables_that_it_has_opened_looks_at_none(store: Store) -> None:
    with log_reads() as reads:
        store.look()

    assert reads == {}
    assert versions_of(store, [table.name for table in TABLES]) == dict.fromkeys((t.name for t in TABLES), 0)


def test_copy_that_takes_the_place_of_the_tables_is_noticed_once_and_then_read(
    store: Store, tmp_path: Path
) -> None:
    store.write(NAME, lags("a"), stamp(0))
    copy = tmp_path.with_name("copy")
    shutil.copytree(tmp_path, copy)
    store.write(NAME, lags("b"), stamp(1))
    store.look()
    shutil.rmtree(tmp_path)
    copy.rename(tmp_path)

    with pytest.raises(
        TablesChangedError, match="table partition_lag does not continue what was known of it"
    ):
        store.look()

    store.look()
    assert groups_in(store) == ["a"]


@pytest.mark.parametrize(
    "words",
    [
        "AWS Error NO_SUCH_KEY during GetObject operation",
        "ReadAt failed to read the required byte range. Azure Error: [BlobNotFound] 404 The specified blob does not exist.",
    ],
)
def test_file_that_an_object_store_does_not_have_is_gone(
    store: Store, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    store.write(NAME, lags("a"), stamp(0))

    def read(_rows: TableRows, **_: object) -> pa.Table:
        error = StoreError("cannot be read")
        error.__context__ = OSError(words)
        raise error

    monkeypatch.setattr(TableRows, "read", read)

    with pytest.raises(
        TablesChangedError, match="files of the newest version of table partition_lag are gone"
    ):
        groups_in(store)
