"""Tables are made once, and brought to what this version writes."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pipeline.errors import StoreError
from pipeline.tables.schemas import TABLES
from pipeline.tables.upkeep.creation import create_tables


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


def test_table_of_another_shape_is_named(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "partition_lag"), pa.table({"cluster": ["x"]}))

    with pytest.raises(StoreError, match=r"table partition_lag .*group_id \(missing\).*move its folder away"):
        create_tables(str(tmp_path), retention_hours=1, storage_options={})
