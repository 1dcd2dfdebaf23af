"""The driver's own port: a thread serves `/healthz`, `/readyz` and `/metrics`, whatever the batches do.

If another process has the port, such as the driver that this one stands by for, this driver works without it, and takes
it once it is free.
"""

import errno
import logging
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from pipeline.config.model import HealthConfig
from pipeline.errors import ConfigError
from pipeline.exposition import CONTENT_TYPE
from pipeline.run.health.monitor import Monitor
from pipeline.run.health.text import metrics

log = logging.getLogger(__name__)

_OK, _NOT_FOUND, _UNAVAILABLE = 200, 404, 503
_JSON = "application/json"
_REQUEST_S = 10
"""A client holds a thread no longer, whether it sends nothing or its request byte by byte."""
_MOST_CONNECTIONS = 32
"""Each takes a file handle and a thread, which the rest of the driver needs too. Probes and a Prometheus take a few."""


class HealthPort:
    """Answers from the start to the end of the block; with port 0 it does nothing."""

    def __init__(self, config: HealthConfig, monitor: Monitor, *, again_after_s: float = 5.0) -> None:
        """Nothing listens yet.

        Args:
            config: Where to listen.
            monitor: Source of the answers.
            again_after_s: Time before the next attempt to open a port in use.
        """
        self._config = config
        self._monitor = monitor
        self._again_after_s = again_after_s
        self._server: ThreadingHTTPServer | None = None
        self._end = threading.Event()
        self._waiting: threading.Thread | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        """Return the address on which it listens; None while it does not."""
        server = self._server
        return None if server is None else (self._config.host, server.server_port)

    def __enter__(self) -> "HealthPort":
        """Begin to listen, or to wait for a port that is taken.

        Raises:
            ConfigError: The address cannot be had.
        """
        host, port = self._config.host, self._config.port
        if port == 0:
            return self
        try:
            self._listen()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise ConfigError(
                    f"health.port: {port} on {host} cannot be opened: {error.strerror}; choose another, or 0 for none"
                ) from None
            log.warning(
                "health.port is taken by another process, so this driver's health is not served; give each driver on "
                "a host its own health.port, or wait until this one gets the port",
                extra={"host": host, "port": port},
            )
            self._waiting = threading.Thread(target=self._wait, name="health-port", daemon=True)
            self._waiting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Listen no more."""
        self._end.set()
        if self._waiting is not None:
            self._waiting.join()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _listen(self) -> None:
        host, port = self._config.host, self._config.port
        server = _server(host, port, _handler(self._monitor))
        threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
        self._server = server
        log.info("health is served", extra={"host": host, "port": port})

    def _wait(self) -> None:
        while not self._end.wait(self._again_after_s):
            try:
                self._listen()
            except OSError:
                continue
            return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = _MOST_CONNECTIONS

    def __init__(self, *arguments: Any) -> None:
        self._lock = threading.Lock()
        self._until_s: dict[socket.socket, float] = {}
        """Open connections, oldest first, and how long each may last."""
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve the client in a thread of its own; if there are too many, in the place of the oldest."""
        with self._lock:
            if len(self._until_s) >= _MOST_CONNECTIONS:
                # A probe comes last, and its failure would restart the driver.
                self._cut(next(iter(self._until_s)))
            self._until_s[request] = time.monotonic() + _REQUEST_S
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # This process may start no more threads.
            self._forget(request)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve the client."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def service_actions(self) -> None:
        """Cut off who has had its time; twice a second."""
        now_s = time.monotonic()
        with self._lock:
            for connection in [one for one, until_s in self._until_s.items() if until_s <= now_s]:
                self._cut(connection)

    def _cut(self, connection: socket.socket) -> None:
        del self._until_s[connection]
        # Its thread closes it.
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def _forget(self, connection: socket.socket) -> None:
        with self._lock:
            self._until_s.pop(connection, None)

    def handle_error(self, *_: Any) -> None:
        """A client that goes away in the middle of an answer is not worth a trace."""


def _server(host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> _Server:
    """One that is bound to the address, of whichever family that is."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = found[0]

    class OfFamily(_Server):
        address_family = family

    return OfFamily((str(address[0]), int(address[1])), handler)


def _handler(monitor: Monitor) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_S

        def do_GET(self) -> None:
            """Answer."""
            status, kind, text = _answer(self.path.partition("?")[0], monitor)
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Probes come every few seconds."""

    return Handler


def _answer(path: str, monitor: Monitor) -> tuple[int, str, str]:
    if path == "/metrics":
        return _OK, CONTENT_TYPE, metrics(monitor)
    if path not in {"/healthz", "/readyz"}:
        return _NOT_FOUND, "text/plain; charset=utf-8", "there are /healthz, /readyz and /metrics\n"
    health = monitor.health()
    is_good = health.is_live if path == "/healthz" else health.is_ready
    return _OK if is_good else _UNAVAILABLE, _JSON, health.to_json()
