"""Checks that a browser's request does not come from another site.

A page of another site may post a form to any address (CSRF), and may point a name of its own at this machine and then
read the answers (DNS rebinding). Against the former, an order must come from a page of the same host; against
the latter, that host must be an address, or a name that nobody else can point here.
"""

from collections.abc import Callable, Collection, Mapping
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pipeline.config.hosts import is_address, is_local_name
from pipeline.config.model import ServeConfig
from pipeline.operate.serve.gate import ALIVE

_MISDIRECTED = 421
_SAME_ORIGIN = "same-origin"


def known_hosts(config: ServeConfig) -> Callable[[Request], Response | None]:
    """Refuse requests for an unknown host name."""

    def refuse(request: Request) -> Response | None:
        # Every browser sends this header.
        host = request.headers.get("Host")
        if host is None or is_known(host, config) or request.scope["path"] == ALIVE:
            return None
        return PlainTextResponse(
            "this page is not known under this name: add the name to serve.hosts, or the proxy's origin to "
            "serve.origins\n",
            _MISDIRECTED,
        )

    return refuse


def is_known(host: str, config: ServeConfig) -> bool:
    """Return whether a `Host` is an address, this machine, or a name from the configuration."""
    name = _name(f"http://{host}")
    return name is not None and (
        is_address(name)
        or is_local_name(name)
        or name in {config.host.lower(), *config.hosts, *_names(config.origins)}
    )


def refusal(headers: Mapping[str, str], config: ServeConfig) -> str | None:
    """Return why an order with these headers is rejected; None if a page of this server sent it."""
    origin, host = headers.get("Origin", "").lower(), headers.get("Host", "").lower()
    if headers.get("Sec-Fetch-Site", _SAME_ORIGIN) != _SAME_ORIGIN:
        return "another site sent it"
    if origin in config.origins:
        return None
    if not host or origin not in {f"http://{host}", f"https://{host}"}:
        return "it was not sent by a page of the same host; behind a proxy, name the proxy's origin in serve.origins"
    if not is_known(host, config):
        return "the page is not known under this name: add the name to serve.hosts, or its origin to serve.origins"
    return None


def _names(origins: Collection[str]) -> set[str | None]:
    return {_name(origin) for origin in origins}


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
