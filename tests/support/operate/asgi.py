"""One request to an ASGI application, without a socket; the path goes in as it is written, nothing is normalised."""

import asyncio
from typing import Any
from urllib.parse import unquote

from tests.support.operate.serving import Answer


def ask(app: Any, url: str, *, method: str = "GET", body: bytes = b"", **headers: str) -> Answer:
    """What is answered to a request of this path and query."""
    raw_path, _, query = url.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(raw_path),
        "raw_path": raw_path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [
            (name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    start, *rest = sent
    return Answer(
        start["status"],
        {name.decode().lower(): value.decode() for name, value in start["headers"]},
        b"".join(message.get("body", b"") for message in rest),
    )
