"""Files that no version of a table needs are removed, also those that its log does not know any more."""

import os
import time
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake
from deltalake.schema import Schema

from pipeline.publish.read_back import newest_plans
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import GROUP_HISTORY, TABLES
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.table_files import TableRows
from pipeline.tables.upkeep.creation import create_tables
from pipeline.tables.upkeep.maintenance import Kept, Round
from tests.support.job import maintenance
from tests.support.job.frames import NOW_MS, arrow, at

HOUR_S = 3600
NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for table in TABLES:
        DeltaTable.create(
            str(tmp_path / table.name),
            schema=Schema.from_arrow(arrow_schema(table.schema)),
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
        stamp = Stamp(batch_id=number, at_ms=NOW_MS)
        store.write("quarantine", arrow("quarantine", record), stamp)
        store.write(
            "lag_history", arrow("lag_history", {"date": time_of.date(), "updated_at": time_of}), stamp
        )

    maintenance.run(str(tmp_path), at_ms=NOW_MS, keep_days=2, storage_options={})

    assert [row["updated_at"] for row in store.rows("quarantine", ["updated_at"])] == [young]
    assert [row["updated_at"] for row in store.rows("lag_history", ["updated_at"])] == [young]


@pytest.mark.parametrize("ahead_days", [0, 40])
@pytest.mark.parametrize(("is_dated", "left"), [(True, {0: 3, 40: 0}), (False, {0: 3, 40: 3})])
def test_clock_that_nothing_vouches_for_deletes_no_more_than_the_days_that_are_too_many(
    tmp_path: Path, ahead_days: int, is_dated: bool, left: dict[int, int]
) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(str(tmp_path), term=1)
    for number in range(5):
        time_of = at(-86_400 * number)
        stamp = Stamp(batch_id=number, at_ms=NOW_MS)
        row = {"date": time_of.date(), "updated_at": time_of}
        store.write("lag_history", arrow("lag_history", row), stamp)
        record = {"offset": number, "kind": "x", "reason": "why", "updated_at": time_of}
        store.write("quarantine", arrow("quarantine", record), stamp)
    kept = Kept(store=Store(str(tmp_path), term=0), keep_days=2, is_dated=is_dated)
    one = Round()
    one.begin()

    one.work(kept, at_ms=NOW_MS + ahead_days * 86_400_000, spare_s=0, begins=lambda _: None, is_whole=True)

    assert store.count("lag_history") == store.count("quarantine") == left[ahead_days]


def test_clock_that_nothing_vouches_for_keeps_a_history_that_is_not_full_yet(tmp_path: Path) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(str(tmp_path), term=1)
    store.write(
        "lag_history",
        arrow("lag_history", {"date": at(0).date(), "updated_at": at(0)}),
        Stamp(batch_id=1, at_ms=NOW_MS),
    )
    one = Round()
    one.begin()

    one.work(
        Kept(store=Store(str(tmp_path), term=0), keep_days=1, is_dated=False),
        at_ms=NOW_MS + 40 * 86_400_000,
        spare_s=0,
        begins=lambda _: None,
        is_whole=True,
    )

    assert store.count("lag_history") == 1


def add_changes(root: Path, **changes: list[tuple[int, str]]) -> None:
    """Rows of `group_history` by group: how many days before `NOON`, and why."""
    rows = [
        {
            "date": (NOON - timedelta(days=days)).date(),
            "cluster": "local",
            "group_id": group,
            "why": why,
            "group_type": "classic",
            "members": [{"member_id": "m", "assigned": {"t": [days]}}],
            "updated_at": NOON - timedelta(days=days),
            "batch_id": 1,
        }
        for group, rows in changes.items()
        for days, why in rows
    ]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(GROUP_HISTORY))
    write_deltalake(str(root / "group_history"), table, mode="append")


def days_left(root: Path) -> list[tuple[str, int]]:
    rows = DeltaTable(str(root / "group_history")).to_pyarrow_table().to_pylist(maps_as_pydicts="strict")
    assert all(row["members"][0]["assigned"] == {"t": [(NOON - row["updated_at"]).days]} for row in rows)
    return sorted((row["group_id"], (NOON - row["updated_at"]).days) for row in rows)


def test_what_a_group_was_when_the_kept_days_began_stays_in_its_history(root: Path) -> None:
    add_changes(
        root,
        steady=[(90, "first_seen")],
        busy=[(50, "first_seen"), (40, "joined"), (35, "left"), (3, "joined")],
        deleted=[(50, "first_seen"), (40, "gone")],
        young=[(40, "first_seen"), (2, "gone")],
    )
    now_ms = int(NOON.timestamp() * 1000)

    for _ in range(2):
        maintenance.run(str(root), at_ms=now_ms, keep_days=30, storage_options={})

    assert days_left(root) == [("busy", 3), ("busy", 35), ("steady", 90), ("young", 2), ("young", 40)]


def test_history_of_groups_that_are_all_gone_is_emptied(root: Path) -> None:
    add_changes(root, deleted=[(50, "first_seen"), (40, "gone")])

    maintenance.run(str(root), at_ms=int(NOON.timestamp() * 1000), keep_days=30, storage_options={})

    assert days_left(root) == []


def test_history_without_old_rows_is_not_written_again(root: Path) -> None:
    add_changes(root, steady=[(90, "first_seen")], busy=[(3, "joined")])

    maintenance.run(str(root), at_ms=int(NOON.timestamp() * 1000), keep_days=30, storage_options={})

    assert DeltaTable(str(root / "group_history")).version() == 1


def decided_long_ago(root: Path, *rows: tuple[str, int | None, str, int]) -> Store:
    """Tables with decisions: group, epoch, what was decided, and how many days ago."""
    create_tables(str(root), retention_hours=1, storage_options={})
    store = Store(str(root), term=1)
    decided = [
        {"group_id": group, "epoch": epoch, "decision": decision, "created_at": at(-days * 86_400)}
        for group, epoch, decision, days in rows
    ]
    plan = {"target_hash": "target", "base_hash": "base", "valid_until": at(0)}
    dated = [row | plan | {"date": row["created_at"].date()} for row in decided]
    store.write("recommendations", arrow("recommendations", *dated), Stamp(batch_id=0, at_ms=NOW_MS))
    return store


def test_newest_plan_of_each_group_stays_in_the_history_so_that_its_epoch_is_not_used_again(
    tmp_path: Path,
) -> None:
    store = decided_long_ago(
        tmp_path,
        ("g", 7, "publish", 60),
        ("g", 8, "publish", 50),
        ("g", None, "unchanged", 40),
        ("h", 3, "publish", 1),
    )

    for _ in range(2):
        maintenance.run(str(tmp_path), at_ms=NOW_MS, keep_days=30, storage_options={})

    left = store.rows("recommendations", ["group_id", "epoch"])
    assert sorted((row["group_id"], row["epoch"]) for row in left) == [("g", 8), ("h", 3)]
    plans, _ = newest_plans(partial(store.arrow, "recommendations"), now_ms=NOW_MS)
    assert {group: plan.epoch for group, plan in plans.items()} == {"g": 8, "h": 3}


def test_decisions_that_are_no_plans_are_not_read_to_expire_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided_long_ago(tmp_path, ("g", 7, "publish", 60), *((f"h{n}", None, "unchanged", 60) for n in range(9)))
    read, rows_read = TableRows.read, list[int]()

    def counting(self: TableRows, **more: Any) -> pa.Table:
        rows = read(self, **more)
        rows_read.append(rows.num_rows)
        return rows

    monkeypatch.setattr(TableRows, "read", counting)
    maintenance.run(str(tmp_path), at_ms=NOW_MS, keep_days=30, storage_options={})

    assert max(rows_read) == 1


def test_table_with_deletion_vectors_is_left_as_it_is(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    DeltaTable(str(root / "lag_history")).alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )
    # As delta-rs sees it, a deletion vector is a file of nobody.
    vector = root / "lag_history" / "deletion_vector_1.bin"
    vector.write_bytes(b"1")
    os.utime(vector, (0, 0))
    version = DeltaTable(root / "lag_history").version()

    maintenance.run(str(root), at_ms=NOW_MS, keep_days=30)

    assert vector.exists()
    assert DeltaTable(root / "lag_history").version() == version
    assert "table lag_history" in caplog.text
    assert "may have deletion vectors, which lagwise does not keep" in caplog.text
