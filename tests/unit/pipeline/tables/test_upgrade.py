"""Tables of earlier versions become tables of this one: once, by who owns them, wherever a driver is killed."""

import signal
import subprocess
import sys
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from pipeline.errors import StoreError
from pipeline.tables import versions
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.owner import ownership
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import BY_NAME
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep import upgrade as upgrading
from pipeline.tables.upkeep.creation import create_tables
from pipeline.tables.versions import Change
from tests.support.job.frames import NOW_MS

STAMP = Stamp(batch_id=3, at_ms=NOW_MS)
_DAYS = (date(2026, 11, 20), date(2026, 11, 21))


def earlier_recommendations(root: Path) -> None:
    """As they were before `plan_state`: without days, and with a column for what the next decision had to know."""
    schema = arrow_schema(BY_NAME["recommendations"].schema)
    earlier = pa.schema([field for field in schema if field.name != "date"]).append(
        pa.field("state", pa.string())
    )
    rows = [
        {
            "cluster": "local",
            "group_id": f"g{number}",
            "epoch": number,
            "decision": "publish",
            "assignment": [("m", [("t", "0-3")])],
            "moves": [{"topic": "t", "partition": 0, "from": "a", "to": "b", "lag": 5}],
            "created_at": datetime(day.year, day.month, day.day, 23, 59, tzinfo=timezone.utc),
            "batch_id": number,
            "state": "{}",
        }
        for number, day in enumerate(_DAYS)
    ]
    DeltaTable.create(str(root / "recommendations"), schema=earlier)
    write_deltalake(
        str(root / "recommendations"),
        pa.Table.from_pylist(rows, schema=earlier),
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"userMetadata": STAMP.to_json()}),
    )


def started(root: Path, owner: str = "driver") -> Store:
    """What a driver does at its start, up to its first batch."""
    store = owned(root, owner)
    upgrading.upgrade(store, lambda: None)
    return store


def owned(root: Path, owner: str) -> Store:
    create_tables(str(root), retention_hours=1, storage_options={})
    return ownership.acquire(Store(str(root), term=0), cluster="local", owner=owner, now_ms=NOW_MS)


def rows_of(store: Store) -> list[tuple[Any, ...]]:
    columns = ["date", "group_id", "epoch", "assignment", "moves", "batch_id"]
    rows = store.rows("recommendations", columns)
    return sorted(tuple(str(row[name]) for name in columns) for row in rows)


_UPGRADED = sorted(
    (str(day), f"g{n}", str(n), str([("m", [("t", "0-3")])]), _moves, str(n))
    for n, day in enumerate(_DAYS)
    for _moves in [str([{"topic": "t", "partition": 0, "from": "a", "to": "b", "lag": 5}])]
)


def test_history_of_decisions_gets_its_days_and_keeps_its_rows(tmp_path: Path) -> None:
    earlier_recommendations(tmp_path)

    store = started(tmp_path)

    assert rows_of(store) == _UPGRADED
    table = DeltaTable(store.path("recommendations"))
    assert table.metadata().partition_columns == ["date"]
    assert [field.name for field in table.schema().fields] == BY_NAME["recommendations"].schema.fieldNames()
    assert all(field.metadata.get("comment") for field in table.schema().fields)
    assert table.protocol().min_reader_version == 1
    assert store.stamp("recommendations") == STAMP


def test_table_that_is_up_to_date_is_left_alone(tmp_path: Path) -> None:
    earlier_recommendations(tmp_path)
    store = started(tmp_path)
    before = DeltaTable(store.path("recommendations")).file_uris()

    again = started(tmp_path, "next")

    assert DeltaTable(again.path("recommendations")).file_uris() == before


def test_driver_writes_on_in_a_table_that_it_has_upgraded(tmp_path: Path) -> None:
    earlier_recommendations(tmp_path)
    store = started(tmp_path)
    rows = store.arrow("recommendations")

    store.append_left("recommendations", rows.slice(0, 1), STAMP)
    store.write("recommendations", rows.slice(1), replace(STAMP, batch_id=0))

    assert store.arrow("recommendations").num_rows == 4


def test_progress_is_told_while_a_table_is_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    earlier_recommendations(tmp_path)
    monkeypatch.setattr(upgrading, "_SAID_EVERY_S", 0.0)
    store, signs = owned(tmp_path, "driver"), list[str]()

    with caplog.at_level("INFO", logger="pipeline"):
        upgrading.upgrade(store, lambda: signs.append("alive"))

    assert signs
    assert [line.message for line in caplog.records if line.name == upgrading.__name__] == [
        "rewriting a table for this version",
        *["still rewriting the table"] * len(signs),
        "table has the schema of this version",
    ]
    told = [line for line in caplog.records if line.message == "still rewriting the table"][-1]
    assert (told.rows_done, told.rows) == (2, 2)  # type: ignore[attr-defined]  # fields of the log


_KILLED = """
import os, signal, sys
from pathlib import Path
import pyarrow as pa
from pipeline.tables.upkeep import upgrade as module
from tests.unit.pipeline.tables.test_upgrade import started

where, root = sys.argv[1:]
write = module.write_deltalake

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def killed(handle, rows, **options):
    if where == "before it is written":
        die()
    if where == "before the commit":
        # The files are there when the last row is given away.
        def all_and_no_more(read=rows):
            yield from read
            die()
        rows = pa.RecordBatchReader.from_batches(rows.schema, all_and_no_more())
    write(handle, rows, **options)
    die()

module.write_deltalake = killed
started(Path(root))
"""


@pytest.mark.parametrize("where", ["before it is written", "before the commit", "after the commit"])
def test_driver_that_is_killed_in_an_upgrade_leaves_it_to_the_next(where: str, tmp_path: Path) -> None:
    earlier_recommendations(tmp_path)
    dead = subprocess.run([sys.executable, "-c", _KILLED, where, str(tmp_path)], cwd=_ROOT, check=False)
    version = DeltaTable(str(tmp_path / "recommendations")).version()

    store = started(tmp_path, "next")

    assert dead.returncode == -signal.SIGKILL
    assert rows_of(store) == _UPGRADED
    assert Store(store.root, term=2).schema_version("recommendations") == 2
    rewrites = DeltaTable(store.path("recommendations")).history()
    assert [one["operationParameters"].get("mode") for one in rewrites].count("Overwrite") == 1
    assert version > 0


_ROOT = Path(__file__).parents[4]


def test_driver_that_was_replaced_upgrades_nothing(tmp_path: Path) -> None:
    earlier_recommendations(tmp_path)
    old = owned(tmp_path, "old")
    owned(tmp_path, "new")

    upgrading.upgrade(old, lambda: None)

    assert old.schema_version("recommendations") == 1


def test_maintenance_of_the_driver_before_that_ends_meanwhile_doubles_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier_recommendations(tmp_path)
    store = owned(tmp_path, "driver")
    path = store.path("recommendations")
    write_deltalake(path, DeltaTable(path).to_pyarrow_table().slice(0, 1), mode="append")
    left = [DeltaTable(path)]

    def overtaken(*arguments: Any, **options: Any) -> None:
        if left:
            left.pop().optimize.compact()
        write_deltalake(*arguments, **options)

    monkeypatch.setattr(upgrading, "write_deltalake", overtaken)
    upgrading.upgrade(store, lambda: None)

    assert not left
    assert store.arrow("recommendations").num_rows == 3
    assert Store(store.root, term=2).schema_version("recommendations") == 2


def test_columns_are_renamed_retyped_and_dropped_and_those_of_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = Change(
        table="orders",
        version=2,
        what="a test",
        computed={"position": pc.field("position").cast(pa.int64()), "ordered_by": pc.field("who")},
        dropped=frozenset({"who"}),
    )
    monkeypatch.setattr(versions, "CHANGES", (*versions.CHANGES, change))
    row = {"cluster": "local", "group_id": "g", "position": "7", "who": "ann", "batch_id": 1, "of_others": 5}
    stored = pa.Table.from_pylist([row | {"updated_at": datetime(2026, 11, 21, tzinfo=timezone.utc)}])
    write_deltalake(str(tmp_path / "orders"), stored)

    store = started(tmp_path)

    assert store.rows("orders", ["group_id", "position", "ordered_by", "paused"]) == [
        {"group_id": "g", "position": 7, "ordered_by": "ann", "paused": None}
    ]
    table = DeltaTable(store.path("orders"))
    names = [field.name for field in table.schema().fields]
    assert names == [*BY_NAME["orders"].schema.fieldNames(), "of_others"]
    assert table.to_pyarrow_table()["of_others"].to_pylist() == [5]


def newer(root: Path, name: str) -> None:
    create_tables(str(root), retention_hours=1, storage_options={})
    handle = DeltaTable(str(root / name))
    handle.create_write_transaction(
        [],
        "append",
        handle.schema(),
        commit_properties=CommitProperties(app_transactions=[Transaction("lagwise-schema", 9)]),
    )


def test_driver_refuses_tables_of_a_newer_version(tmp_path: Path) -> None:
    newer(tmp_path, "acks")

    with pytest.raises(
        StoreError, match=r"table acks at .*/acks/? has schema version 9 of a newer lagwise, and this one "
    ):
        create_tables(str(tmp_path), retention_hours=1, storage_options={})


def test_readers_refuse_tables_of_a_newer_version_and_read_the_others(tmp_path: Path) -> None:
    newer(tmp_path, "recommendations")

    with pytest.raises(StoreError, match=r"knows 2; use the lagwise of the driver"):
        Tables(str(tmp_path)).read("recommendations", columns=["group_id"])
    assert Tables(str(tmp_path)).read("partition_lag", columns=["group_id"]).num_rows == 0


def test_new_tables_say_their_version(tmp_path: Path) -> None:
    store = started(tmp_path)

    assert {name: store.schema_version(name) for name in BY_NAME} == {
        name: versions.known(name) for name in BY_NAME
    }
    assert versions.known("recommendations") == 2


def test_version_outlives_the_log(tmp_path: Path) -> None:
    store = started(tmp_path)
    handle = DeltaTable(store.path("recommendations"))

    handle.create_checkpoint()
    (tmp_path / "recommendations" / "_delta_log" / f"{0:020}.json").unlink()

    assert Store(store.root, term=2).schema_version("recommendations") == 2
