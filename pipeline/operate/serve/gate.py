"""The gate: limits concurrent requests to what memory allows, and requires a token of readers, if one is set."""

import base64
import binascii
import hmac
from collections.abc import Callable, Iterable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

ALIVE = "/healthz"
READY_PATH = "/readyz"
_MOST_REQUESTS = 32
_AGAIN_S = 5
_UNAUTHORISED, _UNAVAILABLE = 401, 503


class Busy:
    """Answers 503 at once while the maximum number of requests is running or waiting; /healthz always passes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        if scope["type"] != "http" or scope["path"] == ALIVE:
            await self._app(scope, receive, send)
            return
        if self._requests >= _MOST_REQUESTS:
            refused = PlainTextResponse(
                f"busy: {_MOST_REQUESTS} requests are being answered; ask again in {_AGAIN_S} s\n",
                _UNAVAILABLE,
                {"Retry-After": str(_AGAIN_S)},
            )
            await refused(scope, receive, send)
            return
        self._requests += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._requests -= 1


class Gate:
    """Passes requests on, or answers with a refusal."""

    def __init__(self, app: ASGIApp, refuse: Callable[[Request], Response | None]) -> None:
        """Wrap the application; `refuse` returns the refusal of a request, or None if it may pass."""
        self._app = app
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        refused = self._refuse(Request(scope)) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send)


def readers(tokens: Iterable[str]) -> Callable[[Request], Response | None]:
    """Refuse requests without one of these tokens, as a bearer or as a login's password; probes need none."""
    known = [token.encode() for token in sorted(tokens)]

    def refuse(request: Request) -> Response | None:
        given = _token(request.headers.get("Authorization", ""))
        # Every token is compared, so that the response time reveals nothing.
        matches = [hmac.compare_digest(given, token) for token in known]
        if any(matches) or request.scope["path"] in {ALIVE, READY_PATH}:
            return None
        return PlainTextResponse(
            "no valid token: send the token of serve.read_token as a bearer, or as the password of any user\n",
            _UNAUTHORISED,
            {"WWW-Authenticate": 'Basic realm="lagwise", charset="UTF-8"'},
        )

    return refuse


def _token(authorization: str) -> bytes:
    """The token in the header; empty if there is none."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip().encode("latin-1", "replace")
    if scheme.lower() != "basic":
        return b""
    try:
        return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
    except (binascii.Error, ValueError):
        return b""
