"""Data files are laid out the same, whoever writes them: the driver, a task, or maintenance."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipeline.tables.files import write_file
from pipeline.tables.reading import Tables
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job import maintenance
from tests.support.job.frames import NOW_MS, arrow, at

LAG = {"committed_offset": 5, "recent_commits": [{"committed_offset": 5, "commit_timestamp_ms": 1, "lag": 1}]}


def stamp(batch_id: int) -> Stamp:
    return Stamp(batch_id=batch_id, at_ms=NOW_MS)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    return Store(str(tmp_path), term=1)


def layout(store: Store, name: str) -> dict[str, tuple[str, bool]]:
    """Of the table's only file, by column: compression, and whether there is a dictionary."""
    (file,) = DeltaTable(store.path(name)).file_uris()
    (group,) = [pq.ParquetFile(file.removeprefix("file://")).metadata.row_group(0)]
    columns = (group.column(number) for number in range(group.num_columns))
    return {one.path_in_schema: (one.compression, one.has_dictionary_page) for one in columns}


@pytest.mark.parametrize("by_task", [False, True])
def test_numbers_are_plain_and_texts_have_dictionaries(store: Store, by_task: bool) -> None:
    rows = arrow("partition_lag", LAG)
    if by_task:
        file = write_file(Tables(store.root), "partition_lag", rows, key="group_id")
        store.write_files("partition_lag", lambda: [file], stamp(0))
    else:
        store.write("partition_lag", rows, stamp(0))

    columns = layout(store, "partition_lag")

    assert {compression for compression, _ in columns.values()} == {"ZSTD"}
    assert columns["group_id"] == columns["member_id"] == ("ZSTD", True)
    assert columns["committed_offset"] == columns["recent_commits.list.element.lag"] == ("ZSTD", False)


def test_maintenance_leaves_the_layout_as_it_is(store: Store) -> None:
    date = at(0).date()
    for number in range(2):
        store.write("lag_history", arrow("lag_history", {"date": date, "lag": number}), stamp(number))

    maintenance.run(store.root, at_ms=NOW_MS, keep_days=1, storage_options={})

    columns = layout(store, "lag_history")
    assert (columns["lag"], columns["group_id"]) == (("ZSTD", False), ("ZSTD", True))
