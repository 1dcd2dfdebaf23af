"""Every answer tells browsers what they may not do with it, whatever its route and status."""

import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import quote_plus, urlsplit

import pytest
from starlette.routing import Route

from pipeline.config.model import Config
from pipeline.operate.serve.app import build_app
from pipeline.operate.serve.listener import connections
from pipeline.operate.serve.orders import MOST_ORDERS, Desk
from pipeline.operate.serve.responses import SafeHeaders
from pipeline.tables.reading import Tables
from tests.support.operate.asgi import ask
from tests.support.operate.serving import Serving, get, serving, serving_app
from tests.support.operate.table_world import World

_WANTED = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
}
_EXPECTED = {
    ("GET", "/"): 200,
    ("GET", "/group?id=billing"): 200,
    ("GET", "/group?id=none"): 404,
    ("GET", "/health"): 200,
    ("GET", "/static/page.css"): 200,
    ("GET", "/static/refresh.js"): 200,
    ("GET", "/metrics"): 200,
    ("GET", "/healthz"): 200,
    ("GET", "/readyz"): 503,
    ("GET", "/api/v1/groups"): 200,
    ("GET", "/api/v1/groups/billing"): 200,
    ("GET", "/api/v1/groups/billing/partitions"): 200,
    ("GET", "/api/v1/groups/billing/decisions"): 200,
    ("GET", "/api/v1/groups/billing/decisions?last=x"): 400,
    ("GET", "/api/v1/health"): 200,
    ("GET", "/nowhere"): 404,
    ("GET", "/approve"): 404,
    ("POST", "/"): 405,
    ("DELETE", "/metrics"): 405,
    ("HEAD", "/healthz"): 200,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    world = World(tmp_path_factory.mktemp("headers"))
    world.write("partition_lag", {"lag": 5})
    world.complete()
    with serving("--tables", str(world.root)) as running:
        yield running


def answer_to(url: str, raw: bytes) -> tuple[int, dict[str, list[str]]]:
    """Status and headers of what comes back for these bytes, which need not be HTTP."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20) as asking:
        asking.sendall(raw)
        found = b""
        with suppress(OSError):
            while b"\r\n\r\n" not in found and (part := asking.recv(65_536)):
                found += part
    status, *lines = found.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    headers: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        headers.setdefault(name.lower(), []).append(value)
    return int(status.split()[1]), headers


def assert_safe(headers: dict[str, list[str]], what: object) -> None:
    for name, value in _WANTED.items():
        assert headers.get(name) == [value], what
    assert len(headers.get("content-security-policy", ())) == 1, what


def test_every_route_is_in_the_loop() -> None:
    app = build_app(Tables("nowhere"), Config())
    assert isinstance(app, SafeHeaders)
    paths = {route.path for route in app.wrapped.routes if isinstance(route, Route)}

    asked = {re.sub(r"groups/billing", "groups/{group}", path.partition("?")[0]) for _, path in _EXPECTED}
    assert paths <= asked


@pytest.mark.parametrize(("method", "path"), _EXPECTED)
def test_answer_has_its_headers_once(served: Serving, method: str, path: str) -> None:
    raw = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()

    status, headers = answer_to(served.url, raw)

    assert status == _EXPECTED[method, path]
    assert_safe(headers, path)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"GET / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n", 421),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 70_000, 400),
    ],
)
def test_refusal_has_them_too(served: Serving, raw: bytes, expected: int) -> None:
    status, headers = answer_to(served.url, raw)

    assert status == expected
    assert_safe(headers, raw[:40])


_TOKEN, _READ_TOKEN = "an operator's token", "a reader's token"
_ORDER = b"plan=3f2a-91bc&name=ann&reason=INC-1&token="


class Clerk:
    """Takes every order."""

    def __call__(self, group: str, *, plan: str, reason: str, by: str) -> None:
        """Do nothing."""


@pytest.fixture
def guarded(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a page with both tokens, short of patience."""
    monkeypatch.setattr(connections, "REQUEST_WITHIN_S", 0.5)
    world.write("partition_lag", {"lag": 5})
    world.complete()
    desk = Desk(token=_TOKEN, approve=Clerk(), stand=lambda *_, **__: "")
    app = build_app(Tables(str(world.root)), Config(), desk, read_token=_READ_TOKEN)
    with serving_app(app) as url:
        yield url


def order_of(url: str, body: bytes, *, bearer: str = _READ_TOKEN) -> bytes:
    """The form as a browser that knows this token sends it."""
    origin = url.replace("127.0.0.1", "localhost").encode()
    head = b"POST /approve?id=billing HTTP/1.1\r\nHost: " + origin.removeprefix(b"http://")
    head += b"\r\nOrigin: " + origin + b"\r\nContent-Type: application/x-www-form-urlencoded"
    head += b"\r\nAuthorization: Bearer " + bearer.encode()
    return head + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def test_orders_and_their_refusals_have_them_too(guarded: str) -> None:
    right = _ORDER + quote_plus(_TOKEN).encode()
    expected = {
        order_of(guarded, right): 200,
        order_of(guarded, _ORDER + b"wrong"): 403,
        order_of(guarded, right).replace(b"Origin: http://localhost", b"Origin: http://evil"): 403,
        order_of(guarded, right, bearer="nobody's"): 401,
        order_of(guarded, b"x" * 20_000): 413,
        order_of(guarded, b"name=ann"): 403,
        order_of(guarded, right).replace(b"urlencoded", b"other"): 400,
        b"GET /approve HTTP/1.1\r\nHost: localhost\r\n\r\n": 401,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ": 408,
    }
    for raw, status in expected.items():
        found, headers = answer_to(guarded, raw)
        assert found == status, raw[:40]
        assert_safe(headers, (status, raw[:40]))

    for _ in range(MOST_ORDERS):
        found, headers = answer_to(guarded, order_of(guarded, right))
        assert found in {200, 429}
        assert_safe(headers, found)
    assert found == 429


def test_connection_too_many_has_them_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_CONNECTIONS", 0)
    with serving_app(build_app(Tables(str(world.root)), Config())) as url:
        status, headers = answer_to(url, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert status == 503
    assert_safe(headers, status)


def test_failure_has_them_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    app = build_app(Tables(str(world.root)), Config())
    unavailable = ask(app, "/metrics", Host="localhost")
    monkeypatch.setattr(Tables, "open", lambda *_: 1 / 0)
    with serving_app(app) as url:
        broken = get(f"{url}/metrics")

    for answer, status in ((unavailable, 503), (broken, 500)):
        assert answer.status == status
        assert_safe({name: [value] for name, value in answer.headers.items()}, status)


def test_one_request_too_many_is_told_so_and_probes_are_let_through(world: World) -> None:
    world.complete()
    app = build_app(Tables(str(world.root)), Config())
    assert isinstance(app, SafeHeaders)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.operate.serve.gate._MOST_REQUESTS", 0)
        busy, alive = ask(app, "/", Host="localhost"), ask(app, "/healthz", Host="localhost")

    assert (busy.status, busy.headers["retry-after"], alive.status) == (503, "5", 200)
    assert "busy: " in busy.text
    assert_safe({name: [value] for name, value in busy.headers.items()}, 503)
    assert ask(app, "/", Host="localhost").status == 200
