"""The driver's own port: what it answers, where it listens, and that it is off unless somebody wants it."""

import json
import socket
import time
from contextlib import ExitStack

import pytest

from pipeline.config.model import Config, HealthConfig
from pipeline.errors import ConfigError
from pipeline.local.embedded.config import free_port
from pipeline.run.health.monitor import Monitor
from pipeline.run.health.port import HealthPort
from tests.support.job.batches import stamp_of
from tests.support.operate.prometheus_text import parse
from tests.support.operate.serving import Answer, get
from tests.support.waiting import wait_until
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
    monitor.kafka_failed("Kafka is unavailable: localhost:9092 refuses")

    found = answers(monitor)

    assert {path: answer.status for path, answer in found.items()} == {
        "/healthz": 200,
        "/readyz": 503,
        "/metrics": 200,
        "/": 404,
    }
    assert json.loads(found["/readyz"].text)["reasons"][0] == "Kafka is unavailable: localhost:9092 refuses"
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


def test_port_that_another_driver_has_is_told_and_taken_when_that_one_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = HealthConfig(port=free_port())
    first = HealthPort(config, Monitor()).__enter__()
    with HealthPort(config, Monitor(), again_after_s=0.01) as second:
        assert second.address is None
        assert "health.port is taken by another process" in caplog.text

        first.__exit__(None, None, None)
        wait_until(lambda: second.address, what="the port")

        assert get(f"http://127.0.0.1:{config.port}/metrics").status == 200
    with pytest.raises(ConnectionRefusedError):
        get(f"http://127.0.0.1:{config.port}/metrics")


def test_driver_that_waits_for_its_port_ends_at_once() -> None:
    config = HealthConfig(port=free_port())
    with HealthPort(config, Monitor()):
        began_s = time.monotonic()
        with HealthPort(config, Monitor(), again_after_s=60):
            pass
        assert time.monotonic() - began_s < 5


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_address_that_cannot_be_had_is_named(host: str) -> None:
    config = HealthConfig(host=host, port=free_port())

    with pytest.raises(ConfigError, match=f"health.port: {config.port} on {host} cannot be opened"):
        HealthPort(config, Monitor()).__enter__()


def test_listens_on_ipv6() -> None:
    with HealthPort(HealthConfig(host="::1", port=free_port()), Monitor()) as port:
        assert port.address
        assert get(f"http://[::1]:{port.address[1]}/metrics").status == 200


def test_idle_clients_take_a_few_connections_and_keep_no_probe_out() -> None:
    config = HealthConfig(port=free_port())
    with HealthPort(config, Monitor()), ExitStack() as clients:
        # The timeout is shorter than the time for which an idle client is kept.
        idle = [
            clients.enter_context(socket.create_connection(("127.0.0.1", config.port), timeout=5))
            for _ in range(33)
        ]

        assert idle[0].recv(1) == b""
        assert get(f"http://127.0.0.1:{config.port}/metrics").status == 200
        assert idle[1].recv(1) == b""
        idle[32].sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert idle[32].recv(12) == b"HTTP/1.0 200"


def test_client_that_sends_its_request_byte_by_byte_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.run.health.port._REQUEST_S", 0.2)
    config = HealthConfig(port=free_port())
    with (
        HealthPort(config, Monitor()),
        socket.create_connection(("127.0.0.1", config.port), timeout=0.02) as client,
    ):
        wait_until(lambda: _is_closed(client), what="the end of the connection", within_s=20)


def _is_closed(client: socket.socket) -> bool:
    try:
        client.sendall(b"G")
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True
