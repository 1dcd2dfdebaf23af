"""`/approve`: the one thing that can be ordered on the page, by who knows the token. There is no such path without one.

What has been ordered is written by whatever is given to `Desk`: this package asks no broker.
"""

import hmac
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from assignor.errors import EncodeError
from pipeline.config.model import ServeConfig
from pipeline.errors import NotWaitingError, PipelineError
from pipeline.operate.serve.rate import Rate
from pipeline.operate.serve.sites import refusal

log = logging.getLogger(__name__)

PATH = "/approve"
FROM_PAGE = "@page"
"""Stands behind the name of who has ordered on the page, where the commands have a host."""
_LEAST_TOKEN = 16
_MOST_BYTES, _MOST_NAME, _MOST_REASON = 16_384, 64, 500
MOST_ORDERS, _RATE_S = 10, 60.0
"""From one address, right or wrong: who guesses tokens does not get far, and no operator is as fast."""
_FORM = "application/x-www-form-urlencoded"
_OK, _BAD_REQUEST, _FORBIDDEN, _CONFLICT, _TOO_LARGE, _TOO_MANY, _UNAVAILABLE = (
    200,
    400,
    403,
    409,
    413,
    429,
    503,
)


class Approve(Protocol):
    """Writes the order that approves a plan.

    Raises:
        NotWaitingError: This plan does not wait.
        StoreError: The tables cannot be read.
        BrokerUnavailableError: The order could not be written.
        AccessRefusedError: The cluster does not let this process do it.
        EncodeError: A text is none that can be written.
    """

    def __call__(self, group: str, *, plan: str, reason: str, by: str) -> None:
        """Write it.

        Args:
            group: The group.
            plan: What names the plan that was looked at.
            reason: Why, for the next operator.
            by: Who orders it.
        """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Desk:
    """Where orders of the page are taken."""

    token: str
    approve: Approve


class Answer(Protocol):
    """Shows a page of a title and a sentence to who has ordered something for a group."""

    def __call__(
        self, request: Request, title: str, text: str, *, group: str | None, status: int
    ) -> Response:
        """The page."""


class _RefusedError(Exception):
    def __init__(self, title: str, text: str, status: int) -> None:
        self.title, self.text, self.status = title, text, status
        super().__init__(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    group: str
    plan: str
    by: str
    reason: str


def why_too_short(token: str) -> str | None:
    """Why nobody should rely on this token; None if it will do."""
    if len(token) >= _LEAST_TOKEN:
        return None
    return f"has {len(token)} characters, and anybody who reaches the page may guess; take {_LEAST_TOKEN} or more"


def order_routes(desk: Desk, config: ServeConfig, answer: Answer) -> Sequence[Route]:
    """Routes on which orders are taken."""
    # The second of two operators is then told who was first, instead of that somebody was.
    lock = threading.Lock()

    def give(request: Request, body: bytes) -> Response:
        group = request.query_params.get("id")
        try:
            order = _order(request, body, desk, config)
            with lock:
                _give(order, desk)
        except _RefusedError as error:
            client = request.client.host if request.client else None
            log.warning(
                "an order was refused", extra={"group_id": group, "client": client, "cause": error.text}
            )
            return answer(request, error.title, error.text, group=group, status=error.status)
        log.info("an order was written", extra={"group_id": group, "plan": order.plan, "by": order.by})
        told = (
            f"{order.by} has approved plan {order.plan}. The stream publishes it with its next batch, or tells under "
            "Decisions why it is refused."
        )
        return answer(request, "Approved", told, group=group, status=_OK)

    rate = Rate(MOST_ORDERS, per_s=_RATE_S)

    async def approve(request: Request) -> Response:
        if not rate.admits(request.client.host if request.client else ""):
            log.warning("orders were refused: too many", extra={"limit": MOST_ORDERS, "per_s": _RATE_S})
            told = f"At most {MOST_ORDERS} orders a minute are taken from one address. Wait a minute."
            group = request.query_params.get("id")
            return answer(request, "Too many orders", told, group=group, status=_TOO_MANY)
        try:
            body = await _body(request)
        except ClientDisconnect:
            return Response(status_code=_BAD_REQUEST)
        return await run_in_threadpool(give, request, body)

    return [Route(PATH, approve, methods=["POST"])]


async def _body(request: Request) -> bytes:
    """The body, or as much of it as shows that it is too long."""
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > _MOST_BYTES:
            break
    return found


def _order(request: Request, body: bytes, desk: Desk, config: ServeConfig) -> _Order:
    why = refusal(request.headers, config)
    if why is not None:
        raise _RefusedError("Not allowed", f"The order was not taken: {why}.", _FORBIDDEN)
    fields = _fields(request, body)
    if not hmac.compare_digest(fields.get("token", "").encode(), desk.token.encode()):
        raise _RefusedError("Not allowed", "The token is not that of serve.token.", _FORBIDDEN)
    group, plan = request.query_params.get("id"), fields.get("plan")
    if group is None or plan is None:
        raise _RefusedError("Not taken", "The order names no group or no plan.", _BAD_REQUEST)
    name = _text(fields, "name", _MOST_NAME)
    if not name:
        raise _RefusedError("Not taken", "Say who you are.", _BAD_REQUEST)
    reason = _text(fields, "reason", _MOST_REASON)
    return _Order(group=group, plan=plan, by=f"{name}{FROM_PAGE}", reason=reason)


def _text(fields: Mapping[str, str], name: str, most: int) -> str:
    text = fields.get(name, "").strip()
    if len(text) > most or not text.isprintable():
        raise _RefusedError(
            "Not taken", f"The {name} has more than {most} characters, or strange ones.", _BAD_REQUEST
        )
    return text


def _fields(request: Request, body: bytes) -> dict[str, str]:
    if len(body) > _MOST_BYTES:
        raise _RefusedError("Not taken", "The order is too long.", _TOO_LARGE)
    if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != _FORM:
        raise _RefusedError("Not taken", f"The order is no {_FORM}.", _BAD_REQUEST)
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict"))
    except ValueError:
        raise _RefusedError("Not taken", "The order is no form.", _BAD_REQUEST) from None


def _give(order: _Order, desk: Desk) -> None:
    try:
        desk.approve(order.group, plan=order.plan, reason=order.reason, by=order.by)
    except NotWaitingError as error:
        raise _RefusedError("Not approved", f"{error}.", _CONFLICT) from error
    except PipelineError as error:
        raise _RefusedError("Not approved", f"{error}.", _UNAVAILABLE) from error
    except EncodeError as error:
        raise _RefusedError("Not taken", f"{error}.", _BAD_REQUEST) from error
