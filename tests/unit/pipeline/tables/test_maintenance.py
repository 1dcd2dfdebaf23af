"""Files that no version of a table needs are removed, also those that its log does not know any more."""

import os
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.schema import Schema
from pyspark.sql.pandas.types import to_arrow_schema

from pipeline.tables import maintenance
from pipeline.tables.creation import create_tables
from pipeline.tables.schemas import TABLES
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from tests.support.frames import NOW_MS, arrow, at

HOUR_S = 3600


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for table in TABLES:
        DeltaTable.create(
            str(tmp_path / table.name),
            schema=Schema.from_arrow(to_arrow_schema(table.schema)),
            partition_by=list(table.partition_by),
            configuration={"delta.deletedFileRetentionDuration": "interval 60 minutes"},
        )
    return tmp_path


def unknown_file(root: Path, *, age_s: float) -> Path:
    path = root / "partition_lag" / f"part-{age_s:.0f}.parquet"
    path.write_bytes(b"of a writer that was killed")
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def test_old_files_that_the_log_does_not_know_are_removed(root: Path) -> None:
    old, fresh = unknown_file(root, age_s=2 * HOUR_S), unknown_file(root, age_s=0)

    maintenance.run(str(root), at_ms=time.time_ns() // 1_000_000, keep_days=1, storage_options={})

    assert not old.exists()
    assert fresh.exists()


def test_rows_of_append_tables_go_when_they_are_older_than_is_kept(tmp_path: Path) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(str(tmp_path), term=1)
    old, young = at(-3 * 86_400), at(-86_400)
    for number, time_of in enumerate((old, young)):
        record = {"offset": number, "kind": "x", "reason": "why", "updated_at": time_of}
        stamp = Stamp(query_id="q", batch_id=number, at_ms=NOW_MS)
        store.write("quarantine", arrow("quarantine", record), stamp)
        store.write(
            "lag_history", arrow("lag_history", {"date": time_of.date(), "updated_at": time_of}), stamp
        )

    maintenance.run(str(tmp_path), at_ms=NOW_MS, keep_days=2, storage_options={})

    assert [row["updated_at"] for row in store.rows("quarantine", ["updated_at"])] == [young]
    assert [row["updated_at"] for row in store.rows("lag_history", ["updated_at"])] == [young]
