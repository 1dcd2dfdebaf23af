"""HTTP responses: compressed if the client accepts it, not sent twice, and with security headers."""

import gzip
from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.operate.output import json_text

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SAFE_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With "no-referrer" browsers send no origin with a form, either.
    "Referrer-Policy": "same-origin",
}
"""Headers of every answer."""
_ENCODED = [(name.lower().encode(), value.encode()) for name, value in SAFE_HEADERS.items()]
_GZIP_LEVEL, _LEAST_BYTES = 1, 1_000
_NOT_MODIFIED = 304


class SafeHeaders:
    """Adds headers that keep a browser from running, framing or guessing the type of its contents."""

    def __init__(self, app: Starlette) -> None:
        self.wrapped = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *_ENCODED]}
            await send(message)

        await self.wrapped(scope, receive, safely)


class RawPaths:
    """Routes by the raw path: names of groups may have slashes and newlines, which are escaped there."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        if scope["type"] == "http":
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await self._app(scope, receive, send)


def respond(
    request: Request,
    body: bytes,
    *,
    media_type: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a response that must not be cached unless `headers` allow it."""
    full = {"Vary": "Accept-Encoding", "Cache-Control": "no-store", **(headers or {})}
    if len(body) >= _LEAST_BYTES and "gzip" in request.headers.get("Accept-Encoding", ""):
        body = gzip.compress(body, _GZIP_LEVEL)
        full["Content-Encoding"] = "gzip"
    return Response(body, status, headers=full, media_type=media_type)


def has_it(request: Request, etag: str) -> bool:
    """Return whether the client has the response with this ETag."""
    return etag in (tag.strip() for tag in request.headers.get("If-None-Match", "").split(","))


def not_modified(headers: Mapping[str, str]) -> Response:
    """The response to a client that has it."""
    return Response(status_code=_NOT_MODIFIED, headers={"Vary": "Accept-Encoding", **headers})


def json_bytes(value: Any) -> bytes:
    """Encode a value as JSON by the rules of `-o json`; NaN becomes null."""
    return f"{json_text(value)}\n".encode()
