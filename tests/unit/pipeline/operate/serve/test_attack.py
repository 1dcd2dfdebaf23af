"""Clients that hold connections, send slowly or ask for much keep nobody else out."""

import asyncio
import logging
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pipeline.operate.serve.listener import connections
from pipeline.operate.serve.listener.connections import REQUEST_WITHIN_S
from tests.support.operate.serving import Serving, get, serving, serving_app
from tests.support.operate.table_world import World
from tests.support.waiting import wait_until

log_of_test = logging.getLogger(__name__)

_HANDLES = 1024
"""`ulimit -n` of the process."""
_ATTACKERS = 1_100
_SERVED_WITHIN_S = 2.0
_MOST_MEMORY_BYTES = 50 << 20
_MOST_LOG_BYTES = 1 << 20
_HALF = b"GET / HTTP/1.1\r\nX: "
_WHOLE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("attack"))
    world.write("partition_lag", {"lag": 5})
    world.complete()
    return world


@pytest.fixture(autouse=True)
def _own_handles() -> Iterator[None]:
    """Let this process open as many sockets as it attacks with."""
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8_192, most), most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


class Log:
    """What the process has logged, read as it comes, so that it is never kept waiting."""

    def __init__(self, running: Serving) -> None:
        self.bytes = 0
        self.text = ""
        self._stream = running.process.stderr
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._stream
        with suppress(ValueError):
            for line in self._stream:
                self.bytes += len(line)
                self.text = (self.text + line)[-100_000:]


@contextmanager
def attackable(tables: World, *more: str) -> Iterator[tuple[Serving, Log]]:
    with serving("--tables", str(tables.root), *more) as running:
        resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (_HANDLES, _HANDLES))
        yield running, Log(running)


def connect(running: Serving | str, first: bytes) -> socket.socket:
    parts = urlsplit(running if isinstance(running, str) else running.url)
    found = socket.socket()
    # What the kernel takes in the place of a client that does not read is not what is tested.
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    found.settimeout(10)
    found.connect((parts.hostname or "", parts.port or 0))
    with suppress(OSError):
        found.sendall(first)
    return found


def memory_bytes(running: Serving) -> int:
    status = Path(f"/proc/{running.process.pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def served_within_s(running: Serving, path: str) -> float:
    began = time.monotonic()
    with suppress(OSError, HTTPException):
        if get(f"{running.url}{path}", timeout_s=5).status == 200:
            return time.monotonic() - began
    return float("inf")


def test_half_open_connections_keep_nobody_out(tables: World) -> None:
    with attackable(tables) as (running, log), ExitStack() as held:
        assert [served_within_s(running, path) < 30 for path in ("/", "/metrics")] == [True, True]
        before = memory_bytes(running)
        for _ in range(_ATTACKERS):
            held.enter_context(connect(running, _HALF))

        waited_s = [served_within_s(running, path) for path in ("/healthz", "/", "/metrics") * 3]
        more = memory_bytes(running) - before
        log_of_test.info(
            "served within %.3f s, %.1f MiB more, %s bytes of log", max(waited_s), more / 2**20, log.bytes
        )

        assert max(waited_s) < _SERVED_WITHIN_S
        assert more < _MOST_MEMORY_BYTES
        assert log.bytes < _MOST_LOG_BYTES
        assert "Traceback" not in log.text


def test_slow_request_is_answered_with_408_and_garbage_with_400(tables: World) -> None:
    with attackable(tables) as (running, _):
        with connect(running, b"nonsense\r\n\r\n") as garbage, connect(running, _HALF) as half:
            assert garbage.recv(1_000).startswith(b"HTTP/1.1 400 ")
            half.settimeout(REQUEST_WITHIN_S + 5)
            began = time.monotonic()
            while time.monotonic() - began < REQUEST_WITHIN_S / 2:
                half.sendall(b"x")
                time.sleep(0.5)  # as a client that keeps its connection alive with single bytes
            answer = half.recv(1_000)

        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"did not arrive within 10 s" in answer
        assert REQUEST_WITHIN_S - 1 < time.monotonic() - began < REQUEST_WITHIN_S + 2


def test_a_thousand_bad_requests_are_one_line_of_log(tables: World) -> None:
    with attackable(tables) as (running, log):
        for _ in range(1_000):
            with connect(running, b"nonsense\r\n\r\n") as garbage:
                garbage.recv(100)
        with connect(running, b"POST /approve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx"):
            pass

        assert served_within_s(running, "/") < _SERVED_WITHIN_S
        assert log.text.count("Invalid HTTP request received") == 1


def test_body_that_turns_into_garbage_after_its_answer_ends_the_connection(tables: World) -> None:
    head = b"POST / HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
    with attackable(tables) as (running, log):
        with connect(running, head) as client:
            assert client.recv(1_000).startswith(b"HTTP/1.1 421 ")
            with suppress(OSError):
                client.sendall(b"zzz\r\n")
                while client.recv(1_000):
                    pass

        assert served_within_s(running, "/") < _SERVED_WITHIN_S
        assert "Traceback" not in log.text


class Working:
    """An application that is at work on every request until it is let go, and then answers with so many bytes."""

    def __init__(self, answer_bytes: int = 1) -> None:
        self.begun = 0
        self.may_end = threading.Event()
        self._answer_bytes = answer_bytes

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:
        self.begun += 1
        await asyncio.to_thread(self.may_end.wait)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * self._answer_bytes})


def received(client: socket.socket) -> bytes:
    """All that comes until the other side has closed."""
    found = b""
    with suppress(ConnectionResetError):
        while part := client.recv(65_536):
            found += part
    return found


def test_connection_beyond_the_limit_is_told_so_and_those_at_work_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    most = 5
    monkeypatch.setattr(connections, "_MOST_CONNECTIONS", most)
    app = Working()
    with serving_app(app) as url, ExitStack() as held:
        held.callback(app.may_end.set)
        busy = [held.enter_context(connect(url, _WHOLE)) for _ in range(most)]
        wait_until(lambda: app.begun == most, what="as many requests as there may be connections")

        refused = received(held.enter_context(connect(url, _WHOLE)))

        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nConnection: close\r\n" in refused
        assert refused.endswith(b"\r\n\r\ntoo many connections; ask again in a few seconds\n")
        assert app.begun == most
        assert [one.__dict__["limit"] for one in caplog.records if "was refused" in one.message] == [most]
        app.may_end.set()
        assert {one.recv(100)[:12] for one in busy} == {b"HTTP/1.1 200"}
        # One that has its answer and sends nothing more makes room for a new one.
        wait_until(lambda: get(url).status == 200, what="an answer")


def test_answer_that_is_not_fetched_for_a_minute_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert connections.FETCHED_WITHIN_S == 60
    monkeypatch.setattr(connections, "FETCHED_WITHIN_S", 3.0)
    size = 8 << 20
    app = Working(size)
    app.may_end.set()
    with serving_app(app) as url, connect(url, _WHOLE) as idle:
        assert len(get(url).body) == size
        wait_until(
            lambda: "a client did not read its response in time" in caplog.text, what="patience at its end"
        )

        # What the kernel has taken is all that still comes.
        assert len(received(idle)) < size
        assert len(get(url).body) == size
    told = [one for one in caplog.records if "did not read its response in time" in one.message]
    assert [one.__dict__["limit_s"] for one in told] == [3.0]


def test_answers_that_nobody_fetches_do_not_fill_the_memory(tables: World) -> None:
    large = World(tables.root.parent / "large")
    large.write("partition_lag", *({"partition": number, "lag": number} for number in range(20_000)))
    large.complete()
    with attackable(large) as (running, log), ExitStack() as held:
        served_within_s(running, "/metrics")
        before = memory_bytes(running)
        for _ in range(60):
            held.enter_context(connect(running, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        wait_until(lambda: "clients that do not read" in log.text, what="a connection is given up")

        assert served_within_s(running, "/healthz") < _SERVED_WITHIN_S
        assert memory_bytes(running) - before < 100 << 20
