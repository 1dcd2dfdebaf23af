"""The driver's own port: what it answers, where it listens, and that it is off unless somebody wants it."""

import json
import socket
from typing import Any

import pytest

from pipeline.config.model import Config, HealthConfig
from pipeline.errors import ConfigError
from pipeline.local.embedded.config import free_port
from pipeline.run.health.monitor import Monitor
from pipeline.run.health.port import HealthPort
from tests.support.batches import stamp_of
from tests.support.prometheus_text import parse
from tests.support.serving import Answer, get
from tests.unit.pipeline.run.health.test_monitor import figures


def answers(monitor: Monitor) -> dict[str, Answer]:
    with HealthPort(HealthConfig(port=free_port()), monitor) as port:
        assert port.address
        host, number = port.address
        return {
            path: get(f"http://{host}:{number}{path}") for path in ("/healthz", "/readyz", "/metrics", "/")
        }


def test_driver_that_waits_for_kafka_is_live_and_not_ready_and_says_why() -> None:
    monitor = Monitor()
    monitor.kafka_failed("Kafka is away: localhost:9092 refuses")

    found = answers(monitor)

    assert {path: answer.status for path, answer in found.items()} == {
        "/healthz": 200,
        "/readyz": 503,
        "/metrics": 200,
        "/": 404,
    }
    assert json.loads(found["/readyz"].text)["reasons"][0] == "Kafka is away: localhost:9092 refuses"
    assert parse(found["/metrics"].text).values["lagwise_kafka_up", frozenset()] == 0


def test_driver_that_works_is_live_and_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = Monitor()
    monkeypatch.setattr("pipeline.run.health.monitor.now_ms", lambda: 1_000)
    monitor.batch_ended(figures(stamp=stamp_of(at_ms=1_000)))

    found = answers(monitor)

    assert (found["/healthz"].status, found["/readyz"].status) == (200, 200)
    assert json.loads(found["/readyz"].text) == {"state": "ok", "live": True, "ready": True, "reasons": []}


def test_is_off_unless_it_is_configured_and_then_on_this_machine_alone() -> None:
    config = Config().health

    with HealthPort(config, Monitor()) as port:
        assert port.address is None
    assert config.host == "127.0.0.1"


def test_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken: Any = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"health.port: {taken} on 127.0.0.1 cannot be opened"):
            HealthPort(HealthConfig(port=taken), Monitor()).__enter__()
