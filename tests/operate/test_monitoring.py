"""Prometheus takes the alert rules, which fire when they should and not otherwise, and answers every panel."""

import subprocess
from pathlib import Path

from pipeline.clock import now_ms
from pipeline.config.model import HealthConfig
from pipeline.local.embedded.config import free_port
from pipeline.run.health.monitor import Monitor
from pipeline.run.health.port import HealthPort
from pipeline.tables.owner.heartbeat import Heartbeat
from tests.operate.prometheus import Prometheus, installed, prometheus
from tests.support.job.batches import stamp_of
from tests.support.operate.dashboards import DASHBOARDS, Query
from tests.support.operate.monitoring import HOME, TESTS
from tests.support.operate.serving import serving
from tests.support.operate.table_world import NOON, World
from tests.support.waiting import wait_until
from tests.unit.pipeline.operate.serve.test_groups import member, owned
from tests.unit.pipeline.operate.serve.test_plans import MADE, state_of
from tests.unit.pipeline.run.health.test_monitor import figures

_PENDING = {"ConsumerGroupOverloaded", "ConsumerGroupStalled"}
"""What holds of the tables of `_world`."""


def promtool(*arguments: object) -> str:
    """What it says when all is well."""
    command = [str(part) for part in (installed("promtool"), *arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_rules_are_sound() -> None:
    assert "11 rules found" in promtool("check", "rules", HOME / "alerts.yaml")


def test_rules_fire_when_they_should_and_not_otherwise() -> None:
    assert promtool("test", "rules", *TESTS).count("SUCCESS") == len(TESTS)


def test_rules_are_evaluated_and_every_panel_is_answered(tmp_path: Path) -> None:
    world, monitor = _world(tmp_path / "tables"), _monitor()
    with (
        Heartbeat(str(world.root), {}, every_s=1, report=monitor.report) as beats,
        HealthPort(HealthConfig(port=free_port()), monitor) as port,
        serving("--tables", str(world.root)) as served,
    ):
        beats.begin("host/7/1", 3)
        assert port.address
        driver = "{}:{}".format(*port.address)
        with prometheus(served.url, tmp_path, driver) as running:
            for query in (query for board in DASHBOARDS for query in board.queries):
                wait_until(lambda q=query: _is_answered(running, q), what=str(query))
            wait_until(lambda: _evaluated(running) == (_PENDING, {"ok"}), what=f"{_PENDING}, no other")


def _is_answered(running: Prometheus, query: Query) -> bool:
    return bool(running.query(query.filled(cluster="c", group="billing")))


def _evaluated(running: Prometheus) -> tuple[set[str], set[str]]:
    """Alerts whose condition holds, and how the rules are."""
    rules = running.rules()
    return {rule["name"] for rule in rules if rule["alerts"]}, {rule["health"] for rule in rules}


def _world(root: Path) -> World:
    """A group that is behind and whose plan is held back after one that was applied; another that waits for approval."""
    world, at_ms = World(root), now_ms()
    rates = {"arrival_rate": 192.0, "drain_rate": 40.0}
    world.write(
        "partition_lag",
        owned(0, "a", lag=600, lag_seconds=290.0, status="STALL", **rates),
        owned(1, "b", lag=5, lag_seconds=1.0, **rates),
        {"group_id": "waiting", "lag": 0, "lag_seconds": 0.0},
        stamp=stamp_of(at_ms=at_ms),
    )
    members = [member("a", {"invoices": [0]}), member("b", {"invoices": [1]}), member("idle")]
    world.write("consumer_groups", {"members": members, "generation": 4})
    shown = {"rate": 1.0, "seen_at": NOON, "shown_rate": 100.0}
    world.write("member_rates", *({"identity": f"client {member_id}", **shown} for member_id in ("a", "b")))
    world.write(
        "plan_state",
        {
            "decision": "unchanged",
            "reason": "held back by cooldown: 3 s",
            "assignment": [],
            "moves": [{"topic": "invoices"}],
            "drain_s_before": 60.0,
            "plan": {**MADE, "status": "open"},
            "state": state_of(revoked={"a": {}}),
            "recorded_at": NOON,
        },
        {"group_id": "waiting", "decision": "awaiting_approval", "recorded_at": NOON},
    )
    world.complete()
    return world


def _monitor() -> Monitor:
    """Of a driver that has finished a batch."""
    monitor = Monitor()
    monitor.owns("c", "host/7/1", 3)
    decisions = [("unchanged", "held back by cooldown: 3 s"), ("awaiting_approval", None)]
    monitor.batch_ended(figures(stamp=stamp_of(at_ms=now_ms()), decisions=decisions))
    return monitor
