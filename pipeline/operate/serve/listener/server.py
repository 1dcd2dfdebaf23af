"""The process: listens on an address until it is stopped."""

import asyncio
import errno
import gc
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio.to_thread
import uvicorn
from starlette.types import ASGIApp

from pipeline.config.model import ServeConfig
from pipeline.errors import ConfigError
from pipeline.operate.serve.listener.connections import BACKLOG, MOST_HEAD_BYTES, Connection, Connections
from pipeline.operate.serve.listener.seldom import seldom_warnings

log = logging.getLogger(__name__)

_LAST_ANSWERS_S = 5
_THREADS = 4
"""More would not be faster on Python's lock, and would hold more memory at once; further requests wait."""
_NO_HANDLES = (errno.EMFILE, errno.ENFILE)


def serve(app: ASGIApp, config: ServeConfig, *, on_listening: Callable[[str], None]) -> None:
    """Answer until SIGINT or SIGTERM; port 0 takes any that is free. `on_listening` gets the URL.

    Raises:
        ConfigError: The address cannot be used.
    """
    host = config.host
    listening = _listening(host, config.port)
    settings = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        backlog=BACKLOG,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        # Without a proxy, a client on this machine would choose the address for which its orders are counted.
        proxy_headers=bool(config.origins),
        timeout_graceful_shutdown=_LAST_ANSWERS_S,
    )
    shown = f"[{host}]" if ":" in host else host
    on_listening(f"http://{shown}:{listening.getsockname()[1]}")
    # Imported objects stay; without freezing, collections of them take a third of the time of reading.
    gc.collect()
    gc.freeze()
    with listening, seldom_warnings():
        _Server(settings).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Ends normally at a signal; uvicorn's own server raises the signal again after its end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.server_state = Connections()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(_tell)
        anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
        await super().startup(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        yield


def _tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log errors of asyncio; a lack of handles in one line, since it comes a hundred times at once."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in _NO_HANDLES:
        log.warning(
            "no connection can be accepted: the process has no file descriptor left; raise LimitNOFILE (ulimit -n)"
        )
    else:
        loop.default_exception_handler(context)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # The wildcard of IPv6 takes IPv4, too, as clients and probes expect.
        is_both = address[0] == "::" and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, dualstack_ipv6=is_both)
    except OSError as error:
        raise ConfigError(
            f"serve: port {port} on {host} cannot be opened: {error.strerror}; choose another with --port or serve.port"
        ) from None
