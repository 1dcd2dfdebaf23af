"""Clients that hold connections, send slowly or ask for much keep nobody else out."""

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pipeline.operate.serve.connections import REQUEST_WITHIN_S
from tests.support.serving import Serving, get, serving
from tests.support.table_world import World
from tests.support.waiting import wait_until

_HANDLES = 1024
"""`ulimit -n` of the process."""
_ATTACKERS = 1_100
_SERVED_WITHIN_S = 2.0
_MOST_MEMORY_BYTES = 50 << 20
_MOST_LOG_BYTES = 1 << 20
_HALF = b"GET / HTTP/1.1\r\nX: "


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


def connect(running: Serving, first: bytes) -> socket.socket:
    parts = urlsplit(running.url)
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

        assert max(waited_s) < _SERVED_WITHIN_S
        assert memory_bytes(running) - before < _MOST_MEMORY_BYTES
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


def test_answers_that_nobody_fetches_do_not_fill_the_memory(tables: World) -> None:
    large = World(tables.root.parent / "large")
    large.write("partition_lag", *({"partition": number, "lag": number} for number in range(20_000)))
    large.complete()
    with attackable(large) as (running, log), ExitStack() as held:
        served_within_s(running, "/metrics")
        before = memory_bytes(running)
        for _ in range(60):
            held.enter_context(connect(running, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        wait_until(lambda: "clients that do not read it" in log.text, what="a connection is given up")

        assert served_within_s(running, "/healthz") < _SERVED_WITHIN_S
        assert memory_bytes(running) - before < 100 << 20
