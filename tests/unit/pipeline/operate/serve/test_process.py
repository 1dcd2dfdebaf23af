"""`lagwise serve` as it is run: without Spark and Kafka clients, until it is told to stop."""

import gc
import gzip
import json
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from pipeline.config.model import Config, ServeConfig
from pipeline.errors import ConfigError
from pipeline.operate.cli.serve import desk_of
from pipeline.operate.serve.app import build_app
from pipeline.operate.serve.listener import server
from pipeline.tables.owner.beat_file import FILE_NAME
from pipeline.tables.owner.driver_report import DriverReport
from pipeline.tables.owner.heartbeat import Heartbeat
from pipeline.tables.reading import Tables
from pipeline.tables.stamp import Stamp
from tests.support.operate.asgi import ask
from tests.support.operate.prometheus_text import parse
from tests.support.operate.serving import Serving, serving
from tests.support.operate.table_world import World

_ENDED_WITHIN_S = 20


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("serve"))
    world.write("partition_lag", {"lag": 5})
    world.complete()
    return world


@pytest.fixture(scope="module")
def served(tables: World) -> Iterator[Serving]:
    with serving("--tables", str(tables.root)) as running:
        yield running


def test_metrics_are_prometheus_text(served: Serving) -> None:
    answer = served.get("/metrics")

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    labels = {"consumergroup": "billing", "topic": "invoices", "partition": "0"}
    assert parse(answer.text).value("kafka_consumergroup_lag", **labels) == 5


def test_metrics_are_compressed_for_who_takes_that(served: Serving) -> None:
    answer = served.get("/metrics", Accept_Encoding="gzip")

    assert answer.headers["content-encoding"] == "gzip"
    assert parse(gzip.decompress(answer.body).decode()).kinds == parse(served.get("/metrics").text).kinds


def test_page_and_its_style_are_html_and_css(served: Serving) -> None:
    page, style = served.get("/group?id=billing"), served.get("/static/page.css")

    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<h1>billing</h1>" in page.text
    assert (style.status, style.headers["content-type"]) == (200, "text/css; charset=utf-8")


def test_name_with_a_slash_reaches_the_api_as_it_was_sent(served: Serving) -> None:
    assert served.get("/api/v1/groups/billing").status == 200
    assert served.get("/api/v1/groups/a%2Fb/partitions").headers["content-type"] == "application/json"
    assert served.get("/api/v1/groups/%62illing").status == 200


def test_answers_while_the_stream_has_not_made_its_tables_yet(tmp_path: Path) -> None:
    with serving("--tables", str(tmp_path)) as running:
        answer = running.get("/metrics")

        assert answer.status == 503
        assert answer.text.startswith("no table partition_lag under")
        assert running.get("/healthz").status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ends_with_status_0_when_it_is_told_to_stop(tables: World, number: signal.Signals) -> None:
    with serving("--tables", str(tables.root)) as running:
        running.get("/healthz")
        running.process.send_signal(number)

        assert running.process.wait(_ENDED_WITHIN_S) == 0


def test_ready_is_what_the_stream_is_and_alive_what_this_process_is(tmp_path: Path) -> None:
    world, now_ms = World(tmp_path), time.time_ns() // 1_000_000
    world.replace("partition_lag", stamp=Stamp(batch_id=1, at_ms=now_ms))
    world.complete()
    said = DriverReport(
        stage="running", interval_s=30, stuck_after_s=300, progress_at_ms=now_ms, batch_s=1.5, is_settled=True
    )
    with serving("--tables", str(tmp_path)) as running:
        before = running.get("/readyz")
        with Heartbeat(str(tmp_path), {}, every_s=60, report=lambda: said) as own:
            own.begin("host/7/1", 1)
            during, metrics = running.get("/readyz"), parse(running.get("/metrics").text)
            stage_during = json.loads(running.get("/api/v1/health").text)["stage"]
        stage_after = json.loads(running.get("/api/v1/health").text)["stage"]
        page_after = running.get("/health").text
        after, metrics_after = running.get("/readyz"), parse(running.get("/metrics").text)

        assert [answer.status for answer in (before, during, after)] == [503, 200, 503]
        assert "was stopped" in json.loads(after.text)["reasons"][0]
        assert (stage_during, stage_after) == ("running", "stopped")
        assert "stopped" in page_after
        assert "running" not in page_after
        for name in ("lagwise_live", "lagwise_ready"):
            assert [one.value(name, cluster_name="c") for one in (metrics, metrics_after)] == [1, 0]
        assert metrics.value("kafka_consumergroup_poll_time_ms", cluster_name="c") == 1500
        age_s = metrics.value("lagwise_tables_age_seconds", cluster_name="c")
        assert age_s is not None
        assert 0 <= age_s < 60
        assert running.get("/healthz").status == 200

        (tmp_path / FILE_NAME).write_text("{")
        unknown = parse(running.get("/metrics").text)
        assert not {"lagwise_live", "lagwise_ready"} & unknown.kinds.keys()
        assert unknown.of("lagwise_tables_age_seconds")
        assert running.get("/readyz").status == 503


def test_driver_whose_clock_is_ahead_has_no_sample_and_figures_of_unknown_age(tmp_path: Path) -> None:
    world, now_ms = World(tmp_path), time.time_ns() // 1_000_000
    world.replace("partition_lag", stamp=Stamp(batch_id=1, at_ms=now_ms))
    world.complete()
    beat = {"owner": "host/7/1", "term": 1, "at_ms": now_ms + 900_000, "is_stopped": False, "report": None}
    (tmp_path / FILE_NAME).write_text(json.dumps(beat))
    app = build_app(Tables(str(tmp_path)), Config())

    health = json.loads(ask(app, "/api/v1/health").text)
    assert (health["state"], health["live"], health["ready"]) == ("unknown", None, False)
    assert ask(app, "/readyz").status == 503
    assert not {"lagwise_live", "lagwise_ready"} & parse(ask(app, "/metrics").text).kinds.keys()
    assert "Nobody can tell whether these figures are old." in ask(app, "/").text


def test_listens_on_this_machine_alone(served: Serving) -> None:
    assert served.url.startswith("http://127.0.0.1:")


def test_port_that_is_taken_is_named(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        result = world.run("serve", "--port", str(port))

    assert result.exit_code == 1
    assert f"port {port} on 127.0.0.1 cannot be opened: Address already in use" in result.stderr


@pytest.mark.parametrize("package", ["uvicorn", "starlette"])
def test_missing_extra_is_named(world: World, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    server = ("pipeline.operate.serve.listener.server", "pipeline.operate.serve.app")
    for name in ("pipeline.operate.cli.serve", *server):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in [one for one in sys.modules if one.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)

    result = world.run("serve")

    assert result.exit_code == 1
    assert f"needs the package {package}: pip install 'lagwise[serve]'" in result.stderr


def test_listens_on_ipv6(tables: World) -> None:
    with serving("--tables", str(tables.root), "--host", "::1") as running:
        assert running.url.startswith("http://[::1]:")
        assert running.get("/").status == 200


def test_orders_need_a_kafka_client_and_say_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("correct horse battery\n", encoding="utf-8")
    file = tmp_path / "lagwise.toml"
    file.write_text(
        f'[tables]\nroot = "{tmp_path}"\n[serve]\ntoken = "file:{tmp_path / "token"}"\n', encoding="utf-8"
    )

    with pytest.raises(AssertionError, match=r"serve\.token: .* pip install 'lagwise\[confluent\]'"):  # noqa: SIM117
        with serving("--config", str(file)):
            pass


def test_token_that_is_missing_or_short_is_told_at_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(serve=ServeConfig(token="env:LAGWISE_PAGE_TOKEN"))  # noqa: S106 - a reference
    tables = Tables(str(tmp_path))

    with pytest.raises(
        ConfigError, match=r"^serve\.token: environment variable LAGWISE_PAGE_TOKEN is not set"
    ):
        desk_of(tables, config)
    monkeypatch.setenv("LAGWISE_PAGE_TOKEN", "short")
    with pytest.raises(ConfigError, match=r"^serve\.token: has 5 characters"):
        desk_of(tables, config)
    assert desk_of(tables, Config()) is None


@pytest.mark.parametrize(("origins", "address"), [([], "127.0.0.1"), (["https://a.example"], "10.0.0.7")])
def test_address_that_a_header_names_counts_only_behind_a_proxy(
    monkeypatch: pytest.MonkeyPatch, origins: list[str], address: str
) -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse(str(Request(scope).client.host))(scope, receive, send)  # type: ignore[union-attr]

    def run(self: Any, **_: Any) -> None:
        self.config.load()
        seen.append(ask(self.config.loaded_app, "/", X_Forwarded_For="10.0.0.7").text)

    monkeypatch.setattr(server._Server, "run", run)
    monkeypatch.setattr(gc, "freeze", lambda: None)

    server.serve(app, ServeConfig(port=0, origins=origins), on_listening=lambda _: None)

    assert seen == [address]
