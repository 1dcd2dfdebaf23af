"""Data files that tasks write, each with what a commit says of it."""

import json
from datetime import date, datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from pipeline.tables.files import write_file
from pipeline.tables.reading import OpenTable, Tables
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.frames import arrow

ROWS = arrow("partition_lag", *({"group_id": group, "partition": 3} for group in ("b", "ä", "a")))
STAMP = Stamp(batch_id=3, at_ms=1)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    return Tables(str(tmp_path))


def test_commit_says_size_rows_and_span_of_the_key(tables: Tables) -> None:
    file = write_file(tables, "partition_lag", ROWS, key="group_id")

    path = Path(tables.root) / "partition_lag" / file.path
    assert (file.size, file.partition_values, file.data_change) == (path.stat().st_size, {}, True)
    assert json.loads(file.stats) == {
        "numRecords": 3,
        "minValues": {"cluster": "local", "group_id": "a", "topic": "t", "partition": 3},
        "maxValues": {"cluster": "local", "group_id": "ä", "topic": "t", "partition": 3},
        "nullCount": {"cluster": 0, "group_id": 0, "topic": 0, "partition": 0},
    }
    assert pq.read_table(path).to_pylist() == ROWS.to_pylist()


def test_no_reader_sees_a_file_that_is_not_committed_and_maintenance_may_remove_it(tables: Tables) -> None:
    file = write_file(tables, "partition_lag", ROWS, key="group_id")

    assert tables.read("partition_lag", columns=["group_id"]).num_rows == 0
    unknown = DeltaTable(f"{tables.root}/partition_lag").vacuum(
        retention_hours=0, enforce_retention_duration=False, full=True
    )
    assert unknown == [file.path]


def test_readers_pass_over_files_whose_span_is_another(tables: Tables) -> None:
    groups = {name: arrow("partition_lag", {"group_id": name}) for name in ("a", "m")}
    files = {name: write_file(tables, "partition_lag", rows, key="group_id") for name, rows in groups.items()}
    store = Store(tables.root, term=1)
    store.write_files("partition_lag", lambda: list(files.values()), STAMP)
    (Path(store.path("partition_lag")) / files["m"].path).unlink()

    assert tables.read("partition_lag", columns=["group_id"], where=pc.field("group_id") < "c").num_rows == 1
    assert len(DeltaTable(store.path("partition_lag")).file_uris()) == 2


@pytest.mark.parametrize(
    ("name", "key"), [("partition_lag", "group_id"), ("topic_offsets", "topic"), ("lag_history", "group_id")]
)
def test_rows_are_found_by_every_column(tables: Tables, name: str, key: str) -> None:
    rows = arrow(name, {"date": date(2026, 11, 25)})
    (row,) = rows.to_pylist()
    Store(tables.root, term=1).write_files(name, lambda: [write_file(tables, name, rows, key=key)], STAMP)

    scalars = {column: value for column, value in row.items() if isinstance(value, str | int)}
    missed = [
        column
        for column, value in scalars.items()
        if tables.read(name, columns=[key], where=pc.field(column) == value).num_rows != 1
    ]

    assert not missed
    assert scalars.keys() >= {"cluster", "topic", "partition"}


def test_rows_are_found_by_columns_that_others_index_without_statistics(tables: Tables) -> None:
    # An operator's ALTER TABLE: from now on the table has a place for statistics of every column.
    DeltaTable(f"{tables.root}/partition_lag").alter.set_table_properties(
        {"delta.dataSkippingNumIndexedCols": "-1"}
    )
    file = write_file(tables, "partition_lag", ROWS, key="group_id")
    Store(tables.root, term=1).write_files("partition_lag", lambda: [file], STAMP)

    row = ROWS.to_pylist()[0]
    scalars = {column: value for column, value in row.items() if isinstance(value, str | int | datetime)}
    missed = [
        column
        for column, value in scalars.items()
        if tables.read("partition_lag", columns=["group_id"], where=pc.field(column) == value).num_rows == 0
    ]

    assert not missed
    assert scalars.keys() >= {"status", "updated_at"}


SPAN = {"minValues": {"group_id": "a"}, "maxValues": {"group_id": "c"}}


@pytest.mark.parametrize(
    ("stats", "found"),
    [
        (None, [3, 3]),
        ("", [3, 3]),
        ({"numRecords": 3}, [3, 3]),
        ({"numRecords": 3, "minValues": {"group_id": "a"}}, [3, 3]),
        ({"numRecords": 3, "maxValues": {"group_id": "c"}}, [3, 3]),
        # Without the number of nulls there may be some.
        ({"numRecords": 3} | SPAN, [0, 3]),
        ({"numRecords": 3, "nullCount": {"group_id": 2}} | SPAN, [0, 3]),
        ({"numRecords": 3, "nullCount": {"group_id": 0}} | SPAN, [0, 0]),
    ],
)
def test_readers_pass_over_a_file_only_if_its_whole_span_is_known(
    stats: dict[str, object] | str | None, found: list[int], tables: Tables
) -> None:
    file = write_file(tables, "partition_lag", ROWS, key="group_id")
    file.stats = json.dumps(stats) if isinstance(stats, dict) else stats
    Store(tables.root, term=1).write_files("partition_lag", lambda: [file], STAMP)

    fragments = tables.dataset("partition_lag").get_fragments
    group = pc.field("group_id")
    wanted = (group == "z", group.is_null())

    assert [sum(one.metadata.num_rows for one in fragments(filter=where)) for where in wanted] == found


@pytest.mark.parametrize(
    "name", ["", "\0", "a\0'\"\\\n", "\u2028", "\uffff", "𠮷", "\U0010ffff" * 100, "z" * 32_767]
)
def test_rows_are_found_by_any_name(tables: Tables, name: str) -> None:
    rows = arrow("partition_lag", {"group_id": name}, {"group_id": "m"})
    file = write_file(tables, "partition_lag", rows, key="group_id")
    Store(tables.root, term=1).write_files("partition_lag", lambda: [file], STAMP)

    found = tables.read("partition_lag", columns=["group_id"], where=pc.field("group_id") == name)

    assert found["group_id"].to_pylist() == [name]


def test_files_are_written_through_delta_rs_where_the_tables_are_not_on_this_machine(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"file://{tables.root}/partition_lag"
    monkeypatch.setattr(Tables, "folder", lambda *_: PyFileSystem(DeltaStorageHandler(uri)))

    file = write_file(tables, "partition_lag", ROWS, key="group_id")

    assert pq.read_table(Path(tables.root) / "partition_lag" / file.path).to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize("by", ["name", "at"])
def test_rows_in_folders_with_escaped_names_and_of_rounded_statistics_are_found(
    tmp_path: Path, by: str
) -> None:
    """Tables that others have repartitioned: the log escapes folders, and cuts times in statistics to milliseconds."""
    at = datetime(2026, 1, 1, 1, 2, 3, 456_789, tzinfo=timezone.utc)
    rows = {"name": ["a b", "a/b", "a%20b", "ü=?"], "at": [at] * 4, "share": [0.1, 0.2, float("nan"), 0.4]}
    write_deltalake(tmp_path, pa.table(rows), partition_by=[by])
    table = OpenTable("t", DeltaTable(tmp_path))

    found = table.read(columns=["name"], where=(pc.field("at") == pa.scalar(at)) & (pc.field("name") != "x"))

    assert sorted(found["name"].to_pylist()) == sorted(rows["name"])
    assert table.read(columns=["name"], where=pc.is_nan(pc.field("share"))).num_rows == 1
