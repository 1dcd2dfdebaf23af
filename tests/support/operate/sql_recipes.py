"""The queries of `deploy/docs/sql.md`, tables to ask, written by the project's own store, and what is the answer."""

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pipeline.clock import now_ms
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.frames import arrow, member

PAGE = Path(__file__).parents[3].joinpath("deploy/docs/sql.md").read_text(encoding="utf-8")
_SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
QUERIES = {
    title: found[1]
    for title, part in _SECTIONS.items()
    if (found := re.search(r"```sql\n(.*?)```", part, re.DOTALL))
}
"""By heading."""
OPENINGS = re.findall(r"```python\n(.*?)```", _SECTIONS["Open the tables"], re.DOTALL)
"""How to open the tables: in DuckDB, in Spark."""
ROOT = "/data/lagwise"
"""Of the tables, in the openings."""

MONDAY = datetime(2026, 1, 12, tzinfo=timezone.utc)
NOW = MONDAY + timedelta(days=9, hours=12)
_PUBLISHED = MONDAY + timedelta(days=8, hours=10)


def written(folder: Path) -> Store:
    """The tables."""
    create_tables(str(folder), retention_hours=0, storage_options={})
    store = Store(str(folder), term=1)
    for batch_id, (name, rows) in enumerate(_ROWS.items()):
        store.write(name, arrow(name, *rows), Stamp(batch_id=batch_id, at_ms=now_ms()))
    return store


def _lag(group: str, partition: int, lag: int | None, seconds: float | None, **more: Any) -> dict[str, Any]:
    key = {"group_id": group, "partition": partition, "updated_at": NOW}
    return {**key, "lag": lag, "lag_seconds": seconds, "lag_seconds_is_lower_bound": False, **more}


def _committed(ago_s: float, *, at_commit: int, every_s: float) -> dict[str, Any]:
    return {
        "lag_at_commit": at_commit,
        "commit_interval_seconds": every_s,
        "commit_timestamp": NOW - timedelta(seconds=ago_s),
        "log_observed_at": NOW,
    }


def _past(group: str, at: datetime, seconds: float | None) -> dict[str, Any]:
    return {"group_id": group, "date": at.date(), "updated_at": at, "lag_seconds": seconds}


def _plan(status: str, made: int, realised_s: float | None) -> dict[str, Any]:
    return {
        "epoch": 7,
        "status": status,
        "moves": 2,
        "moves_made": made,
        "published_at": _PUBLISHED,
        "predicted_drain_s": 90.0,
        "realised_drain_s": realised_s,
    }


_ROWS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "partition_lag": (
        _lag("billing", 0, 700, 120.0, member_id="b1", arrival_rate=99.0, retention_seconds=7_200.0),
        _lag("billing", 1, 0, 0.0, member_id="b2", arrival_rate=0.5),
        _lag("billing", 2, None, None, provisional=True, member_id="b3"),
        _lag("billing", 3, 5_000, 9_999.0, status="DELETED", retention_seconds=1.0),
        _lag(
            "shipping", 0, 40, 900.0, lag_seconds_is_lower_bound=True, retention_seconds=0.0, trend="growing"
        ),
        _lag("shipping", 1, 0, 0.0, retention_seconds=21_600.0),
        _lag("audit", 0, None, None),
        _lag("rare", 0, 60, 50.0, **_committed(50, at_commit=2, every_s=60.0)),
        _lag("rare", 1, 600, 500.0, **_committed(500, at_commit=2, every_s=60.0)),
        _lag("slow", 0, 900, 9.0, **_committed(4, at_commit=880, every_s=5.0)),
    ),
    "consumer_groups": (
        {"group_id": "billing", "state": "Stable", "members": [member(f"b{n}") for n in (1, 2, 3, 4)]},
        {"group_id": "shipping", "state": "Empty", "members": []},
    ),
    "lag_history": (
        # Mondays at nine are worst on the whole, though one Tuesday was worse than one of them.
        _past("billing", MONDAY + timedelta(hours=9, minutes=10), 100.0),
        _past("billing", MONDAY + timedelta(hours=9, minutes=50), 300.0),
        _past("billing", MONDAY + timedelta(days=7, hours=9), 100.0),
        _past("billing", MONDAY + timedelta(days=1, hours=10), 10.0),
        # Around the plan: 150 before it, 199 while members move, 20 when they have, 180 when something else has come.
        _past("billing", _PUBLISHED - timedelta(minutes=20), 150.0),
        _past("billing", _PUBLISHED + timedelta(minutes=5), 199.0),
        _past("billing", _PUBLISHED + timedelta(minutes=40), 20.0),
        _past("billing", _PUBLISHED + timedelta(minutes=61), 180.0),
        _past("shipping", MONDAY + timedelta(days=5, hours=23, minutes=59), 60.0),
        _past("shipping", MONDAY + timedelta(days=6), None),
        _past("audit", datetime(2025, 12, 31, tzinfo=timezone.utc), 5_000.0),
    ),
    "recommendations": (
        {"decision": "publish", "group_id": "billing", "created_at": _PUBLISHED, "date": date(2026, 1, 20)},
        {
            "decision": "unchanged",
            "group_id": "billing",
            "created_at": _PUBLISHED + timedelta(minutes=1),
            "date": date(2026, 1, 20),
            "plan": _plan("open", 1, None),
        },
    ),
    "plan_state": (
        {
            "decision": "unchanged",
            "group_id": "billing",
            "updated_at": NOW,
            "recorded_at": _PUBLISHED,
            "plan": _plan("applied", 2, 80.5),
            "plan_effect": "helped",
        },
    ),
}

ANSWERS: Mapping[str, list[tuple[Any, ...]]] = {
    "Who is behind most?": [
        ("local", "shipping", 40, 900.0, 900.0, 0, 0, NOW),
        ("local", "rare", 660, 500.0, None, 0, 0, NOW),
        ("local", "billing", 700, 120.0, None, 1, 1, NOW),
        ("local", "slow", 900, 9.0, None, 0, 0, NOW),
        ("local", "audit", None, None, None, 1, 0, NOW),
    ],
    "Which partitions have the oldest unread record?": [
        ("local", "shipping", "t", 0, 40, 900.0, True, None, False, NOW),
        ("local", "rare", "t", 1, 600, 500.0, False, None, False, NOW),
        ("local", "billing", "t", 0, 700, 120.0, False, None, False, NOW),
        ("local", "rare", "t", 0, 60, 50.0, False, None, False, NOW),
        ("local", "slow", "t", 0, 900, 9.0, False, None, False, NOW),
    ],
    "Is it behind, or does it commit seldom?": [
        ("local", "billing", "t", 3, 5_000, None, None, None),
        ("local", "slow", "t", 0, 900, 880, 5.0, "behind"),
        ("local", "billing", "t", 0, 700, None, None, None),
        ("local", "rare", "t", 1, 600, 2, 60.0, "commits are late"),
        ("local", "rare", "t", 0, 60, 2, 60.0, "commits seldom"),
        ("local", "shipping", "t", 0, 40, None, None, None),
    ],
    "What is each group's worst hour of the week?": [
        ("local", "billing", "Mon", 9, 200.0, 2),
        ("local", "shipping", "Sat", 23, 60.0, 1),
    ],
    "Was it better after the plan?": [
        ("local", "billing", 7, _PUBLISHED, "applied", 2, "helped", 90.0, 80.5, 150.0, 20.0),
    ],
    "Which members idle?": [
        ("local", "billing", "b4", None, 0, 0.0, 99.5),
        ("local", "billing", "b2", None, 1, 0.5, 99.5),
    ],
    "Which partitions are near retention?": [
        ("local", "shipping", "t", 0, 40, 0.0, "growing", None, NOW),
        ("local", "billing", "t", 0, 700, 7_200.0, None, None, NOW),
    ],
}
"""By heading of the query."""
