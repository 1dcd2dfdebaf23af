"""The process: an address to listen on, until it is told to stop."""

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from pipeline.config.model import Config
from pipeline.errors import ConfigError
from pipeline.operate.serve.app import build_app
from pipeline.operate.serve.orders import Desk
from pipeline.tables.reading import Tables

_LAST_ANSWERS_S = 5


def serve(
    tables: Tables, config: Config, *, on_listening: Callable[[str], None], desk: Desk | None = None
) -> None:
    """Answer on the address in `config.serve` until SIGINT or SIGTERM.

    Args:
        tables: What is shown.
        config: See `build_app`; port 0 takes any that is free.
        on_listening: Called with the URL as soon as it answers.
        desk: See `build_app`.

    Raises:
        ConfigError: The address cannot be had.
    """
    host = config.serve.host
    listening = _listening(host, config.serve.port)
    settings = uvicorn.Config(
        build_app(tables, config, desk),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=_LAST_ANSWERS_S,
    )
    shown = f"[{host}]" if ":" in host else host
    on_listening(f"http://{shown}:{listening.getsockname()[1]}")
    with listening:
        _Server(settings).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Ends in good order when it is told to; uvicorn's own raises the signal again when it has ended."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        yield


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
