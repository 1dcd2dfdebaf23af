"""The driver's own port: `/healthz`, `/readyz` and `/metrics`, answered by a thread whatever the batches do."""

import logging
import threading
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
"""A client that sends nothing holds a thread no longer."""


class HealthPort:
    """Answers from the start to the end of the block; with port 0 it does nothing."""

    def __init__(self, config: HealthConfig, monitor: Monitor) -> None:
        """Nothing listens yet."""
        self._config = config
        self._monitor = monitor
        self._server: ThreadingHTTPServer | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        """Where it listens; None while it does not."""
        return None if self._server is None else (self._config.host, self._server.server_port)

    def __enter__(self) -> "HealthPort":
        """Begin to listen.

        Raises:
            ConfigError: The port cannot be had.
        """
        host, port = self._config.host, self._config.port
        if port == 0:
            return self
        try:
            self._server = _Server((host, port), _handler(self._monitor))
        except OSError as error:
            raise ConfigError(
                f"health.port: {port} on {host} cannot be opened: {error.strerror}; choose another, or 0 for none"
            ) from None
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()
        log.info("health is answered", extra={"host": host, "port": port})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: Any) -> None:
        """A client that goes away in the middle of an answer is not worth a trace."""


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
