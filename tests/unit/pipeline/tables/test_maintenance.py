"""Files that no version of a table needs are removed, also those that its log does not know any more."""

import os
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.schema import Schema
from pyspark.sql.pandas.types import to_arrow_schema

from pipeline.tables import maintenance
from pipeline.tables.schemas import TABLES

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
