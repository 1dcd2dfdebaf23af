"""A group to be shown, and the page that shows it."""

from collections.abc import Callable
from typing import Any

import pytest

from pipeline import clock
from pipeline.config.model import Config
from pipeline.operate.serve.app import build_app
from pipeline.tables.reading import Tables
from pipeline.tables.stamp import Stamp
from tests.support.operate.asgi import ask
from tests.support.operate.serving import Answer
from tests.support.operate.table_world import NOON, World

Asking = Callable[..., Answer]
_AT_MS = int(NOON.timestamp() * 1000)


@pytest.fixture
def page(world: World) -> Asking:
    world.complete()
    app = build_app(Tables(str(world.root)), Config())
    return lambda path, **headers: ask(app, path, **headers)


@pytest.fixture
def billing(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A group with a plan that moves a partition from one member to an idle one, a minute after its newest batch."""
    monkeypatch.setattr(clock, "now_ms", lambda: _AT_MS + 60_000)
    owner = {"member_id": "m-1", "client_id": "one", "client_host": "/10.0.0.1", "assigned": True}
    rates = {"arrival_rate": 3.25, "drain_rate": 2.0}
    world.write(
        "partition_lag",
        {
            "lag": 70_123,
            "lag_at_commit": 69_000,
            "trend": "growing",
            "retention_seconds": 7_200.0,
            "lag_seconds": 912.5,
            "status": "STALL",
            **rates,
            **owner,
        },
        {"lag": 5, "partition": 1, "lag_seconds": 1.0, **rates, **owner},
        {"partition": 2, "status": "UNKNOWN"},
        {"group_id": "other", "lag": 12},
        stamp=Stamp(batch_id=7, at_ms=_AT_MS),
    )
    members: list[dict[str, Any]] = [
        {
            "member_id": "m-1",
            "client_id": "one",
            "client_host": "/10.0.0.1",
            "assigned": [("invoices", [0, 1])],
        },
        {"member_id": "m-2", "client_id": "two", "client_host": "/10.0.0.2", "assigned": []},
    ]
    world.write("consumer_groups", {"generation": 4, "state": "Stable", "members": members})
    move = {"topic": "invoices", "partition": 1, "from": "m-1", "to": "m-2", "lag": 5}
    plan = {"epoch": 6, "moves": 3, "moves_made": 2, "published_at": NOON, "status": "partly"}
    decided = {
        "decision": "unchanged",
        "reason": "held back by cooldown: 3 s",
        "assignment": [("m-1", [("invoices", "0")]), ("m-2", [("invoices", "1")])],
        "moves": [move],
        "drain_s_before": 240.0,
        "drain_s_after": 44.0,
        "plan": {**plan, "predicted_drain_s": 40.5, "realised_drain_s": 61.25},
    }
    world.write("plan_state", {**decided, "recorded_at": NOON})
    world.write("recommendations", decided)
    world.write(
        "orders",
        {
            "paused": True,
            "pause_reason": "<i>night</i>",
            "ordered_by": "eva",
            "position": 1,
            "approved_target_hash": "3f2a",
            "approved_base_hash": "91bc",
            "approved_by": "ann@page",
            "approval_reason": "INC-1",
            "approved_at": NOON,
        },
    )
    return world
