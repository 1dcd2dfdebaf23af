"""A cluster whose store does not answer costs the others a moment, and not each request its time-out."""

import socket
import threading
import time
from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.model import ClusterConfig, Config
from pipeline.errors import MissingTableError, StoreError
from pipeline.operate.serve import remembering
from pipeline.operate.serve.app import build_app
from pipeline.operate.serve.clusters import Deployment
from pipeline.tables.reading import OpenTable, Tables
from tests.support.operate.asgi import ask
from tests.support.operate.cluster_world import cluster_world
from tests.support.waiting import wait_until

_PATHS = (
    "/",
    "/health",
    "/metrics",
    "/readyz",
    "/api/v1/groups",
    "/api/v1/health",
    "/group?id=billing&cluster=eu",
)


class Store:
    """Under root `us`: refuses, is silent, or answers; counts how often it is asked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.asked = 0
        self.is_up = False
        self.speaks = threading.Event()
        self.speaks.set()
        self._open = Tables.open

    def open(self, tables: Tables, name: str) -> OpenTable:
        if tables.root == str(self.root):
            self.asked += 1
            assert self.speaks.wait(60)
            if not self.is_up:
                raise StoreError(f"table {name} at {self.root} cannot be opened: connection refused")
        return self._open(tables, name)


def _asked(tables: Tables, store: Store, name: str) -> OpenTable:
    return store.open(tables, name)


@pytest.fixture
def us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    store = Store(cluster_world(tmp_path / "us", "us", lag=5).root)
    monkeypatch.setattr(Tables, "open", partialmethod(_asked, store))
    yield store
    store.speaks.set()


@pytest.fixture
def app(tmp_path: Path, us: Store) -> Any:
    eu = cluster_world(tmp_path / "eu", "eu", lag=70)
    named = Config(cluster=ClusterConfig(name="eu"))
    return build_app(
        Tables(str(eu.root)), named, others=[Deployment(tables=Tables(str(us.root)), config=Config())]
    )


def test_store_that_has_failed_is_not_asked_by_each_request(app: Any, us: Store) -> None:
    first = ask(app, "/api/v1/groups")
    answers = [ask(app, path) for path in _PATHS]

    assert "connection refused" in first.text
    assert [one.status for one in answers] == [200, 200, 200, 503, 200, 200, 200]
    assert us.asked == 1


def test_store_that_answers_again_is_seen_with_the_next_try(
    app: Any, us: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(app, "/")
    us.is_up = True
    assert "connection refused" in ask(app, "/").text

    later = time.monotonic() + remembering.AGAIN_AFTER_S
    monkeypatch.setattr(remembering, "monotonic", lambda: later)

    assert "of-us" in ask(app, "/").text


def test_store_that_is_silent_is_asked_again_without_making_requests_wait(
    app: Any, us: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembering, "AGAIN_AFTER_S", 0.0)
    monkeypatch.setattr(remembering, "PATIENCE_S", 0.05)
    ask(app, "/")
    before = us.asked
    us.is_up = True
    us.speaks.clear()

    answers = [ask(app, "/") for _ in range(3)]

    assert [(one.status, "connection refused" in one.text, "of-eu" in one.text) for one in answers] == [
        (200, True, True)
    ] * 3
    assert us.asked == before + 1, "one asks, and the others do not wait in line"
    us.speaks.set()
    wait_until(lambda: "of-us" in ask(app, "/").text, what="the store that speaks again is shown")


def test_missing_table_is_an_answer_and_not_remembered(tmp_path: Path) -> None:
    tables = remembering.remembering(Tables(str(tmp_path / "us")))

    with pytest.raises(MissingTableError):
        tables.open("partition_lag")
    cluster_world(tmp_path / "us", "us", lag=5)
    assert tables.open("partition_lag").name == "partition_lag"


def test_request_that_names_a_configured_cluster_asks_no_other(app: Any, us: Store) -> None:
    assert ask(app, "/api/v1/groups/billing?cluster=eu").status == 200
    assert ask(app, "/group?id=billing&cluster=eu").status == 200
    assert us.asked == 0


def test_store_is_given_up_in_time_and_settings_of_the_user_stay() -> None:
    assert remembering.bounded({"region": "x"}).keys() == {
        "region",
        "timeout",
        "connect_timeout",
        "retry_timeout",
        "max_retries",
    }
    given = {"TIMEOUT": "60s", "aws_connect_timeout": "9s", "max_retries": "0", "retry_timeout": "1s"}
    assert remembering.bounded(given) == given


def test_endpoint_that_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(remembering._BOUNDS, "timeout", "1s")
    monkeypatch.setitem(remembering._BOUNDS, "retry_timeout", "1s")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = {
            "endpoint_url": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "allow_http": "true",
            "region": "us-east-1",
            "access_key_id": "a",
            "secret_access_key": "b",
        }
        tables = remembering.remembering(Tables("s3://bucket/tables", options))
        began = time.monotonic()
        with pytest.raises(StoreError, match="cannot be opened"):
            tables.open("partition_lag")
        assert time.monotonic() - began < 10
