"""Forms of orders: the checks before an order is written."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.requests import Request

from pipeline.config.model import ServeConfig
from pipeline.operate.serve.sites import refusal

FROM_PAGE = "@page"
"""Suffix of the operator's name in orders from the page; the commands use a host."""
_MOST_BYTES, _MOST_NAME, _MOST_REASON = 16_384, 64, 500
_FORM = "application/x-www-form-urlencoded"
BAD_REQUEST = 400
_FORBIDDEN, _TOO_LARGE = 403, 413


class RefusedError(Exception):
    """The order is rejected.

    Attributes:
        title: Title of the page with the refusal.
        text: The reason, as a sentence.
        status: HTTP status.
    """

    def __init__(self, title: str, text: str, status: int) -> None:
        self.title, self.text, self.status = title, text, status
        super().__init__(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A valid order."""

    group: str
    what: str
    """Name of the field with the order."""
    by: str
    reason: str
    partitions: str


async def body_of(request: Request) -> bytes:
    """The body, or as much of it as shows that it is too long.

    Raises:
        ClientDisconnect: The client has disconnected.
    """
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > _MOST_BYTES:
            break
    return found


def form_of(request: Request, body: bytes, *, what: str, token: str, config: ServeConfig) -> Form:
    """The order, after checking that a page of this server sent it with the right token.

    `what` names the field with the order; `token` is that of `serve.token`, resolved.

    Raises:
        RefusedError: A check fails, or the form is invalid.
    """
    why = refusal(request.headers, config)
    if why is not None:
        raise RefusedError("Not allowed", f"The order was not accepted: {why}.", _FORBIDDEN)
    fields = _fields(request, body)
    if not hmac.compare_digest(fields.get("token", "").encode(), token.encode()):
        raise RefusedError("Not allowed", "The token is not that of serve.token.", _FORBIDDEN)
    group, ordered = request.query_params.get("id"), fields.get(what)
    if group is None or not ordered:
        raise RefusedError("Not taken", f"The order is missing its group or its {what}.", BAD_REQUEST)
    name = _text(fields, "name", _MOST_NAME)
    if not name:
        raise RefusedError("Not taken", "Say who you are.", BAD_REQUEST)
    reason, partitions = _text(fields, "reason", _MOST_REASON), _text(fields, "partitions", _MOST_BYTES)
    return Form(group=group, what=ordered, by=f"{name}{FROM_PAGE}", reason=reason, partitions=partitions)


def _text(fields: Mapping[str, str], name: str, most: int) -> str:
    text = fields.get(name, "").strip()
    if len(text) > most or not text.isprintable():
        raise RefusedError(
            "Not taken",
            f"The {name} has more than {most} characters, or some that cannot be printed.",
            BAD_REQUEST,
        )
    return text


def _fields(request: Request, body: bytes) -> dict[str, str]:
    if len(body) > _MOST_BYTES:
        raise RefusedError("Not taken", "The order is too long.", _TOO_LARGE)
    if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != _FORM:
        raise RefusedError("Not taken", f"The order is not {_FORM}.", BAD_REQUEST)
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict"))
    except ValueError:
        raise RefusedError("Not taken", "The order is not a form.", BAD_REQUEST) from None
