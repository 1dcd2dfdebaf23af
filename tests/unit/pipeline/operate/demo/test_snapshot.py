from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pipeline.operate.demo.snapshot import Snapshot, read_snapshot
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import TABLES
from tests.support.operate.demo_views import NOON, group, share

_SCHEMAS = {table.name: arrow_schema(table.schema) for table in TABLES}
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
        {**mine, "partition": 2, "lag": None, "lag_seconds": 0.0, "status": "WARN"},
    ]

    found = _read(tmp_path, lags=lags)

    (one,) = found.groups[0].shares
    assert (one.client_id, one.partitions, one.lag, one.status) == ("one", 3, 12, "STALL")
    assert (one.lag_seconds, one.arrival_rate, one.drain_rate) == (9.0, 2.5, 0.5)
    assert (found.lag, found.partitions, found.seen_at) == (12, 3, NOON)


def test_owners_are_the_known_ones_of_each_partition(tmp_path: Path) -> None:
    lags = [
        {"partition": 0, "member_id": "m", "client_id": "one"},
        {"partition": 1, "member_id": None},
        {"group_id": "h", "partition": 1, "member_id": "n", "client_id": "two"},
    ]

    assert _read(tmp_path, lags=lags).owners == {("g", "t", 0): "m", ("h", "t", 1): "n"}


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ({"lag_seconds": 3.0}, 3.0),
        ({"lag_seconds": None}, None),
        ({"lag_seconds": 0.5, "lag_seconds_is_lower_bound": True}, None),
    ],
    ids=["known", "unknown", "at-least"],
)
def test_a_group_is_as_far_behind_as_its_worst_partition_if_all_are_known(
    second: dict[str, Any], expected: float | None, tmp_path: Path
) -> None:
    lags = [
        {"partition": 0, "lag": 1, "lag_seconds": 2.0, "member_id": "m", "client_id": "one"},
        {"partition": 1, "lag": 1, **second},
    ]

    found = _read(tmp_path, lags=lags, groups=[{"members": [_member("idle", "idle")]}])

    assert found.groups[0].whole.lag_seconds == expected


def test_without_a_commit_all_of_the_log_is_unread(tmp_path: Path) -> None:
    lags = [
        {"partition": 0, "lag": 4, "committed_offset": 6, "log_start_offset": 0, "log_end_offset": 10},
        {"partition": 1, "lag": None, "log_start_offset": 3, "log_end_offset": 10},
        {"partition": 2, "lag": None},
    ]

    found = _read(tmp_path, lags=lags)

    assert (found.groups[0].whole.lag, found.groups[0].whole.unread) == (4, 11)


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ({"lag": 9, "lag_at_commit": 3, "committed_offset": 1}, 5),
        ({"lag": 0, "committed_offset": 1}, 2),
        ({"lag": 9, "committed_offset": 1}, None),
        ({"lag": None, "log_start_offset": 3, "log_end_offset": 10}, 9),
        ({"lag": None}, None),
    ],
    ids=["known", "caught-up", "unknown", "no-commit", "nothing-known"],
)
def test_unread_records_at_the_commits_are_known_if_they_are_of_every_partition(
    second: dict[str, Any], expected: int | None, tmp_path: Path
) -> None:
    first = {"partition": 0, "lag": 4, "lag_at_commit": 2, "committed_offset": 6}

    found = _read(tmp_path, lags=[first, {"partition": 1, **second}])

    assert found.groups[0].whole.lag_at_commit == expected


def test_a_group_without_partitions_is_not_known_to_be_behind_or_not(tmp_path: Path) -> None:
    found = _read(tmp_path, groups=[{"members": [_member("m", "one")]}])

    assert found.groups[0].whole.lag_seconds is None


def test_a_group_as_one_has_the_sums_and_the_worst_status() -> None:
    one = group(share("a", lag=1), share("b", lag=2, status="STALL"), share(None, lag=4)).whole

    assert (one.client_id, one.partitions, one.lag, one.status) == ("2 members", 9, 7, "STALL")
    assert (one.arrival_rate, one.drain_rate) == (30.0, 30.0)


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
