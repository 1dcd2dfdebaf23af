"""Rows of the driver, written without Spark: once per batch, by the driver that owns the tables."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures
from deltalake.transaction import AddAction

from pipeline.errors import StoreError
from pipeline.run.batch.plans.history import record_left_decisions
from pipeline.run.tasks.tables import history_rows
from pipeline.tables import store as store_module
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.files import write_file
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import PARTITION_LAG, PLAN_STATE, RECOMMENDATIONS, TABLES
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job import maintenance
from tests.support.job.frames import NOW_MS, arrow, at
from tests.support.job.table_versions import versions_of

_ROW = {"cluster": "local", "decision": "unchanged", "recorded_at": at(0), "updated_at": at(0), "batch_id": 5}
_RECORDED = {
    "cluster": "local",
    "decision": "unchanged",
    "created_at": at(0),
    "date": at(0).date(),
    "batch_id": 5,
}


def stamp(batch_id: int, at_ms: int = NOW_MS) -> Stamp:
    return Stamp(batch_id=batch_id, at_ms=at_ms)


def decisions(*groups: str, **fields: Any) -> pa.Table:
    rows = [_ROW | fields | {"group_id": group} for group in groups]
    return pa.Table.from_pylist(rows, schema=arrow_schema(PLAN_STATE))


def recorded(*groups: str) -> pa.Table:
    rows = [_RECORDED | {"group_id": group} for group in groups]
    return pa.Table.from_pylist(rows, schema=arrow_schema(RECOMMENDATIONS))


def groups_in(store: Store, name: str) -> Sequence[str]:
    return sorted(row["group_id"] for row in store.rows(name, ["group_id"]))


def store_of(root: Path, term: int) -> Store:
    return Store(str(root), term=term)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    return tmp_path


@pytest.mark.parametrize("name", list(" ü&=;:+,'\"~@!$()"))
def test_stamp_is_found_in_any_other_folder(name: str, tmp_path: Path) -> None:
    root = str(tmp_path / f"a{name}b")
    create_tables(root, retention_hours=1, storage_options={})
    store = Store(root, term=1)

    store.restamp("partition_lag", Stamp(batch_id=3, at_ms=1))

    stamp = store.stamp("partition_lag")
    assert stamp is not None
    assert stamp.batch_id == 3


def test_latest_table_holds_the_newest_batch_and_its_stamp(root: Path) -> None:
    store = store_of(root, 1)
    store.write("plan_state", decisions("g", "h"), stamp(0))

    store.write("plan_state", decisions("i"), stamp(1))

    assert groups_in(store, "plan_state") == ["i"]
    assert store.stamp("plan_state") == stamp(1)


def test_batch_that_runs_twice_under_one_term_is_appended_once(root: Path) -> None:
    store = store_of(root, 1)

    for _ in range(2):
        store.write("recommendations", recorded("g"), stamp(3))
    store.write("recommendations", recorded("h"), stamp(4))

    assert groups_in(store, "recommendations") == ["g", "h"]


def test_driver_whose_term_is_over_writes_nothing(root: Path) -> None:
    old, new = store_of(root, 1), store_of(root, 2)
    new.touch()

    old.write("recommendations", recorded("of the old one"), stamp(9))
    new.write("recommendations", recorded("of the new one"), stamp(0))

    assert groups_in(new, "recommendations") == ["of the new one"]


@pytest.mark.parametrize("name", ["plan_state", "recommendations"])
def test_driver_that_is_replaced_between_look_and_commit_writes_nothing(name: str, root: Path) -> None:
    rows = {"plan_state": decisions, "recommendations": recorded}[name]
    old, new = store_of(root, 1), store_of(root, 2)
    before = versions_of(old, [name])
    old.look()
    new.write(name, rows("of the new one"), stamp(0))
    assert versions_of(old, [name]) == before

    old.write(name, rows("of the old one"), stamp(9))

    assert groups_in(new, name) == ["of the new one"]


_LAG = {
    "cluster": "local",
    "group_id": "g",
    "topic": "t",
    "status": "OK",
    "assigned": False,
    "provisional": False,
}
_LAG |= {"confirmed": True, "updated_at": at(0), "batch_id": 5}


def lags(*history_at: Any) -> pa.Table:
    rows = [_LAG | {"partition": number, "history_at": when} for number, when in enumerate(history_at)]
    return pa.Table.from_pylist(rows, schema=arrow_schema(PARTITION_LAG))


def history_file(root: Path) -> AddAction:
    tables = Tables(str(root))
    return write_file(tables, "lag_history", history_rows(tables, lags(), None), key="group_id")


def test_files_of_an_append_table_are_added_once_in_the_folder_of_their_day(root: Path) -> None:
    store = store_of(root, 1)
    store.write("partition_lag", lags(at(0), at(-60), None, at(0)), stamp(0))

    for batch_id in (0, 0, 1):
        store.write_files("lag_history", lambda: [history_file(root)], stamp(batch_id))

    day = at(0).date()
    rows = store.rows("lag_history", ["partition", "date"])
    assert sorted(row["partition"] for row in rows) == [0, 0, 3, 3]
    assert {row["date"] for row in rows} == {day}
    assert store.stamp("lag_history") == stamp(1)
    assert {Path(uri).parent.name for uri in store.handle("lag_history").file_uris()} == {f"date={day}"}


def test_what_a_dead_driver_left_is_appended_and_hides_no_batch_of_a_new_checkpoint(root: Path) -> None:
    store = store_of(root, 2)

    store.append_left("recommendations", recorded("left"), stamp(500))
    store.write("recommendations", recorded("of batch 0"), stamp(0))

    assert groups_in(store, "recommendations") == ["left", "of batch 0"]


def test_decisions_that_a_dead_driver_did_not_record_are_recorded_once(root: Path) -> None:
    dead = store_of(root, 1)
    dead.write("recommendations", recorded("earlier"), stamp(4, NOW_MS - 60_000))
    rows = [
        decisions("differs"),
        decisions("same", recorded_at=at(-60)),
        decisions("old", updated_at=at(-60)),
    ]
    dead.write("plan_state", pa.concat_tables(rows), stamp(5))

    for term in (2, 3):
        record_left_decisions(store_of(root, term))

    assert groups_in(dead, "recommendations") == ["differs", "earlier"]
    assert dead.stamp("recommendations") == stamp(5)


def test_what_is_recorded_is_not_recorded_again_though_its_stamp_is_gone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a stop longer than the log's retention the stamp of one table may be there, and that of the other gone."""
    dead = store_of(root, 1)
    dead.write("plan_state", decisions("g", "h"), stamp(5))
    dead.write("recommendations", recorded("g"), stamp(5))
    later, found = store_of(root, 2), dead.stamp
    monkeypatch.setattr(later, "stamp", lambda name: None if name == "recommendations" else found(name))

    record_left_decisions(later)

    assert groups_in(dead, "recommendations") == ["g", "h"]


def test_stamp_survives_maintenance_and_tells_batch_and_clock(root: Path) -> None:
    store = store_of(root, 1)
    given = Stamp(batch_id=3, at_ms=NOW_MS, behind=(1, 2), reason="not read yet")
    store.write("recommendations", recorded("g"), given)

    maintenance.run(str(root), at_ms=time.time_ns() // 1_000_000, keep_days=10_000, storage_options={})

    assert store.stamp("recommendations") == given
    assert given.batch_id == 3


def test_stamp_is_found_behind_any_number_of_starts_without_a_batch(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_of(root, 1).write("recommendations", recorded("g"), stamp(3))
    only = [table for table in TABLES if table.name == "recommendations"]
    monkeypatch.setattr(store_module, "TABLES", only)

    for term in range(2, 62):
        store_of(root, term).touch()

    assert DeltaTable(str(root / "recommendations")).version() == 61
    assert store_of(root, 62).stamp("recommendations") == stamp(3)


def test_log_of_a_latest_table_has_checkpoints_and_keeps_its_stamps(root: Path) -> None:
    store = store_of(root, 1)

    for batch_id in range(30):
        store.write("plan_state", decisions("g"), stamp(batch_id))

    log = root / "plan_state" / "_delta_log"
    assert list(log.glob("*.checkpoint.parquet"))
    assert len(list(log.glob("*.json"))) == 31


def test_nothing_is_recorded_of_tables_without_decisions(root: Path) -> None:
    record_left_decisions(store_of(root, 1))

    assert store_of(root, 1).stamp("recommendations") is None


@pytest.mark.parametrize("by", ["property", "feature"])
def test_table_that_takes_no_commit_is_told_at_once_with_the_way_out(
    root: Path, by: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    made = store_of(root, 1)
    made.write("partition_lag", arrow("partition_lag", {}), stamp(0))
    table = DeltaTable(made.path("partition_lag"))
    if by == "property":
        table.alter.set_table_properties({"delta.appendOnly": "true"})
    else:
        table.alter.add_feature(TableFeatures.RowTracking, allow_protocol_versions_increase=True)

    with pytest.raises(
        StoreError, match=r"table partition_lag .* cannot be written: .* does not support: unset the property"
    ):
        made.write("partition_lag", arrow("partition_lag", {}), stamp(1))

    # By the change itself.
    assert caplog.text.count("another driver also writes") <= 1
