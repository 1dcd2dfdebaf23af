"""Tables are made once, and brought to what this version writes."""

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pipeline.errors import StoreError
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import TABLES
from pipeline.tables.stamp import Stamp, newest_stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.frames import NOW_MS, arrow


@pytest.fixture
def root(tmp_path: Path) -> str:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    return str(tmp_path)


def test_every_table_has_its_columns_commented_and_plain_features(root: str) -> None:
    for table in TABLES:
        stored = DeltaTable(f"{root}/{table.name}")
        assert [field.name for field in stored.schema().fields] == table.schema.fieldNames()
        assert all(field.metadata.get("comment") for field in stored.schema().fields)
        assert stored.protocol().min_reader_version == 1


def test_making_the_tables_again_changes_nothing(root: str) -> None:
    create_tables(root, retention_hours=1, storage_options={})

    assert DeltaTable(f"{root}/partition_lag").version() == 0


def test_new_retention_reaches_the_tables(root: str) -> None:
    create_tables(root, retention_hours=2, storage_options={})

    properties = DeltaTable(f"{root}/lag_history").metadata().configuration
    assert properties["delta.deletedFileRetentionDuration"] == "interval 120 minutes"


@pytest.mark.parametrize("brings", ["retention", "columns"])
def test_start_after_a_long_stop_does_not_cut_the_newest_stamp_off_the_log(root: str, brings: str) -> None:
    """The checkpoint that is due with its commit would remove all commits that are older than the retention."""
    store, table = Store(root, term=1), Path(root, "partition_lag")
    for number in range(23):
        store.restamp("partition_lag", Stamp(batch_id=number, at_ms=1))
        store = store.under(store.term + 1)
    long_ago_s = time.time() - 1_000_000
    for file in (table / "_delta_log").iterdir():
        os.utime(file, (long_ago_s, long_ago_s))
    if brings == "columns":
        _forget_column(table, "lag_at_commit")

    create_tables(root, retention_hours=2 if brings == "retention" else 1, storage_options={})

    handle = DeltaTable(str(table))
    assert handle.version() == 24
    assert newest_stamp(handle) == Stamp(batch_id=22, at_ms=1)


def _forget_column(table: Path, name: str) -> None:
    """Make the table one of a version that did not have this column."""
    first = table / "_delta_log" / f"{0:020}.json"
    before = first.stat()
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    for metadata in (line["metaData"] for line in lines if "metaData" in line):
        schema = json.loads(metadata["schemaString"])
        schema["fields"] = [field for field in schema["fields"] if field["name"] != name]
        metadata["schemaString"] = json.dumps(schema)
    first.write_text("\n".join(map(json.dumps, lines)))
    os.utime(first, (before.st_atime, before.st_mtime))


def test_table_of_another_shape_is_named(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "partition_lag"), pa.table({"cluster": ["x"]}))

    with pytest.raises(StoreError, match=r"table partition_lag .*group_id \(missing\).*move its folder away"):
        create_tables(str(tmp_path), retention_hours=1, storage_options={})


@pytest.mark.parametrize("damage", ["zeros", "cut"])
def test_damaged_log_is_told_in_one_line_with_a_remedy(root: str, damage: str) -> None:
    store = Store(root, term=1)
    store.write("partition_lag", arrow("partition_lag", {}), Stamp(batch_id=0, at_ms=NOW_MS))
    newest = max(Path(root, "partition_lag", "_delta_log").glob("*.json"))
    newest.write_bytes(b"\0" * 500 if damage == "zeros" else newest.read_bytes()[:200])

    for opens in (
        lambda: create_tables(root, retention_hours=1, storage_options={}),
        lambda: Tables(root).open("partition_lag"),
    ):
        with pytest.raises(StoreError) as told:
            opens()

        text = str(told.value)
        assert text.startswith(f"table partition_lag at {root}/partition_lag cannot be opened: ")
        assert text.endswith(
            "; the log of the table is damaged: stop the stream, and restore this table's folder from a backup, or "
            "move it away"
        )
        assert "\n" not in text
        assert " 0: " not in text
        assert text.isprintable()
