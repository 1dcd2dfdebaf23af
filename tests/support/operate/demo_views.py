"""Small snapshots to show."""

from datetime import datetime, timezone
from typing import Any

from pipeline.operate.demo.moves import Move
from pipeline.operate.demo.report.timeline import GroupTimeline, Point
from pipeline.operate.demo.snapshot import GroupView, Plan, Share, Snapshot
from pipeline.run.query import Report
from tests.support.job.batches import stamp_of

NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


def share(client_id: str | None = "billing-1", **given: Any) -> Share:
    defaults = {
        "partitions": 3,
        "lag": 0,
        "lag_seconds": 0.0,
        "arrival_rate": 10.0,
        "drain_rate": 10.0,
        "status": "OK",
    }
    lag = given.get("lag", 0)
    return Share(client_id=client_id, **{"unread": lag, "lag_at_commit": lag, **defaults, **given})


def group(*shares: Share, group_id: str = "billing") -> GroupView:
    return GroupView(group_id=group_id, group_type="classic", assignor="range", shares=shares)


def plan(**given: Any) -> Plan:
    defaults = {
        "group_id": "billing",
        "created_at": NOON,
        "decision": "publish",
        "reason": None,
        "epoch": 1,
        "moves": 2,
        "drain_s_before": 400.0,
        "drain_s_after": 50.0,
        "drain_s_bound": 40.0,
        "capacity_known": True,
    }
    return Plan(**{**defaults, **given})


def snapshot(*groups: GroupView, plans: tuple[Plan, ...] = (), seen_at: datetime = NOON) -> Snapshot:
    return Snapshot(groups=groups, plans=plans, seen_at=seen_at)


def move(**given: Any) -> Move:
    defaults = {
        "group_id": "billing",
        "epoch": 1,
        "topic": "orders",
        "partition": 0,
        "from_client": "billing-1",
        "to_client": "billing-4",
        "at": NOON,
    }
    return Move(**{**defaults, **given})


def timeline(**given: Any) -> GroupTimeline:
    defaults = {
        "group_id": "billing",
        "follows": True,
        "points": (Point(at_s=20.0, lag=9000), Point(at_s=30.0, lag=12_000), Point(at_s=60.04, lag=1000)),
        "was_behind": True,
        "drained_s": 60.04,
        "moves_at_s": (33.0, 33.5, 34.0),
    }
    return GroupTimeline(**{**defaults, **given})


def report(**given: Any) -> Report:
    defaults = {
        "stamp": stamp_of(batch_id=7),
        "seconds": 2.5,
        "seconds_by_step": {},
        "counts": {},
        "published": 0,
        "is_complete": True,
        "is_overdue": False,
        "unanswered": 0,
        "offsets_left": 0,
        "is_settled": True,
        "records_left": 0,
        "has_read": True,
        "waited_s": 0.0,
    }
    return Report(**{**defaults, **given})
