from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.pandas.types import to_arrow_schema

from pipeline.demo.snapshot import Snapshot, read_snapshot
from pipeline.reading import Tables
from pipeline.schemas import TABLES
from tests.support.demo_scenes import NOON

_SCHEMAS = {table.name: to_arrow_schema(table.schema) for table in TABLES}
_COMMON = {"cluster": "c", "group_id": "g", "updated_at": NOON, "created_at": NOON, "batch_id": 1}
_LAG = {"topic": "t", "status": "OK", "assigned": True, "provisional": False, "confirmed": True}


def _write(root: Path, table: str, *rows: dict[str, Any]) -> None:
    schema = _SCHEMAS[table]
    full = [{name: {**_COMMON, **_LAG, **row}.get(name) for name in schema.names} for row in rows]
    write_deltalake(root / table, pa.Table.from_pylist(full, schema=schema))


def _read(
    root: Path,
    *,
    lags: list[dict[str, Any]] | None = None,
    groups: list[dict[str, Any]] | None = None,
    plans: list[dict[str, Any]] | None = None,
    **options: Any,
) -> Snapshot:
    _write(root, "partition_lag", *(lags or []))
    _write(root, "consumer_groups", *({"group_type": "classic", **row} for row in groups or []))
    _write(root, "recommendations", *(plans or []))
    return read_snapshot(Tables(str(root)), **{"plans_after": None, **options})


def _member(member_id: str, client_id: str) -> dict[str, str]:
    return {"member_id": member_id, "client_id": client_id}


def test_a_member_has_the_sum_of_its_partitions_and_the_worst_status(tmp_path: Path) -> None:
    mine = {"member_id": "m", "client_id": "one"}
    lags = [
        {**mine, "partition": 0, "lag": 5, "lag_seconds": 2.0, "arrival_rate": 1.0, "drain_rate": 0.5},
        {**mine, "partition": 1, "lag": 7, "lag_seconds": 9.0, "arrival_rate": 1.5, "status": "STALL"},
        {**mine, "partition": 2, "lag": None, "status": "WARN"},
    ]

    found = _read(tmp_path, lags=lags)

    (one,) = found.groups[0].shares
    assert (one.client_id, one.partitions, one.lag, one.status) == ("one", 3, 12, "STALL")
    assert (one.lag_seconds, one.arrival_rate, one.drain_rate) == (9.0, 2.5, 0.5)
    assert (found.lag, found.partitions) == (12, 3)


def test_idle_members_are_shown_and_partitions_of_nobody_come_last(tmp_path: Path) -> None:
    members = [_member("m2", "busy"), _member("m1", "idle")]
    lags = [
        {"partition": 0, "lag": 1, "member_id": None, "assigned": False},
        {"partition": 1, "lag": 2, "member_id": "m2", "client_id": "busy"},
    ]

    found = _read(tmp_path, lags=lags, groups=[{"members": members}])

    shares = [(share.client_id, share.partitions) for share in found.groups[0].shares]
    assert shares == [("busy", 1), ("idle", 0), (None, 1)]


def test_groups_without_members_and_without_commits_are_shown(tmp_path: Path) -> None:
    found = _read(
        tmp_path,
        lags=[{"group_id": "only-commits", "partition": 0, "lag": 1}],
        groups=[{"group_id": "only-members", "members": [_member("m", "c")]}],
    )

    assert [group.group_id for group in found.groups] == ["only-commits", "only-members"]
    assert [group.group_type for group in found.groups] == [None, "classic"]


@pytest.mark.parametrize(("after", "expected"), [(None, [1, 2]), (NOON, [2])], ids=["all", "later"])
def test_plans_are_those_made_since_oldest_first(tmp_path: Path, after: Any, expected: list[int]) -> None:
    plans = [
        {"epoch": 2, "decision": "publish", "created_at": NOON + timedelta(seconds=1)},
        {"epoch": 1, "decision": "publish", "moves": []},
    ]

    found = _read(tmp_path, plans=plans, plans_after=after)

    assert [plan.epoch for plan in found.plans] == expected
