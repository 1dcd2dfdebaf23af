"""`/approve` and `/order`: orders on the page, with the token; without a configured token these paths do not exist.

The functions of a `Desk` write the orders: this package does not use Kafka.
"""

import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, get_args

import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from assignor.errors import EncodeError
from pipeline.config.model import ServeConfig
from pipeline.errors import NotWaitingError, OrderError, PipelineError
from pipeline.operate.serve.order_form import BAD_REQUEST, Form, RefusedError, body_of, form_of
from pipeline.operate.serve.rate import Rate

log = logging.getLogger(__name__)

PATH, STANDING_PATH = "/approve", "/order"
Standing: TypeAlias = Literal["pause", "resume", "pin", "unpin"]
_STANDING: tuple[Standing, ...] = get_args(Standing)
_LEAST_TOKEN = 16
MOST_ORDERS, _RATE_S = 10, 60.0
"""Attempts from one address, right or wrong: too few to guess tokens, and enough for any operator."""
_THREADS = 4
"""For orders alone: while they wait for Kafka, the page and /metrics have the threads of the process."""
_OK, _CONFLICT, _TOO_MANY, _UNAVAILABLE = 200, 409, 429, 503


class Approve(Protocol):
    """`cli.orders.approval.approve_plan` for one cluster, with its errors."""

    def __call__(self, group: str, *, plan: str, reason: str, by: str) -> object:
        """Write the order."""


class Stand(Protocol):
    """`cli.orders.standing.stand` for one cluster, with its errors."""

    def __call__(self, group: str, *, order: Standing, partitions: str, reason: str, by: str) -> str:
        """Write the order; what holds for the group then."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Desk:
    """Accepts orders of the page."""

    token: str
    approve: Approve
    stand: Stand
    cluster: str | None = None
    """Name of the cluster, if there are several."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Serialises orders, so that the second of two operators learns who was first."""


class Answer(Protocol):
    """Answers an order with a page of a title and a sentence."""

    def __call__(
        self, request: Request, title: str, text: str, *, group: str | None, status: int
    ) -> Response:
        """The page."""


_Clerk: TypeAlias = Callable[[Form, Desk], tuple[str, str]]
"""Gives an order; returns title and text of the answer."""


def why_too_short(token: str) -> str | None:
    """Why this token is too weak; None if it is not."""
    if len(token) >= _LEAST_TOKEN:
        return None
    return f"has {len(token)} characters, so anybody who reaches the page may guess it; use {_LEAST_TOKEN} or more"


def order_routes(
    token: str, desk_of: Callable[[Request], Desk], config: ServeConfig, answer: Answer
) -> Sequence[Route]:
    """Routes on which orders are taken; `desk_of` raises `RefusedError` for a cluster that takes none."""
    rate = Rate(MOST_ORDERS, per_s=_RATE_S)
    threads = anyio.CapacityLimiter(_THREADS)

    def taking(what: str, clerk: _Clerk) -> Callable[[Request], Awaitable[Response]]:
        def give(request: Request, body: bytes) -> Response:
            group = request.query_params.get("id")
            about: dict[str, str | None] = {"group_id": group}
            try:
                form = form_of(request, body, what=what, token=token, config=config)
                desk = desk_of(request)
                about |= {} if desk.cluster is None else {"cluster": desk.cluster}
                with desk.lock:
                    title, told = _given(form, desk, clerk)
            except RefusedError as error:
                client = request.client.host if request.client else None
                log.warning("an order was refused", extra={**about, "client": client, "cause": error.text})
                return answer(request, error.title, error.text, group=group, status=error.status)
            log.info("an order was written", extra={**about, what: form.what, "by": form.by})
            return answer(request, title, told, group=group, status=_OK)

        async def take(request: Request) -> Response:
            if not rate.admits(request.client.host if request.client else ""):
                return _too_many(request, answer)
            try:
                body = await body_of(request)
            except ClientDisconnect:
                return Response(status_code=BAD_REQUEST)
            return await anyio.to_thread.run_sync(give, request, body, limiter=threads)

        return take

    return [
        Route(PATH, taking("plan", _approve), methods=["POST"]),
        Route(STANDING_PATH, taking("order", _stand), methods=["POST"]),
    ]


def _too_many(request: Request, answer: Answer) -> Response:
    log.warning("orders were refused: too many", extra={"limit": MOST_ORDERS, "per_s": _RATE_S})
    told = f"At most {MOST_ORDERS} orders a minute are accepted from one address. Wait a minute."
    return answer(request, "Too many orders", told, group=request.query_params.get("id"), status=_TOO_MANY)


def _approve(form: Form, desk: Desk) -> tuple[str, str]:
    desk.approve(form.group, plan=form.what, reason=form.reason, by=form.by)
    return "Approved", (
        f"{form.by} has approved plan {form.what}. The stream publishes it with its next batch, or says under "
        "Decisions why not."
    )


def _stand(form: Form, desk: Desk) -> tuple[str, str]:
    order = next((one for one in _STANDING if one == form.what), None)
    if order is None:
        raise OrderError(f"there is no such order; there are {', '.join(_STANDING)}")
    told = desk.stand(form.group, order=order, partitions=form.partitions, reason=form.reason, by=form.by)
    return "Ordered", told


def _given(form: Form, desk: Desk, clerk: _Clerk) -> tuple[str, str]:
    of_cluster = "" if desk.cluster is None else f"Cluster {desk.cluster}: "
    try:
        title, told = clerk(form, desk)
    except NotWaitingError as error:
        raise RefusedError("Not approved", f"{of_cluster}{error}.", _CONFLICT) from error
    except (OrderError, EncodeError) as error:
        raise RefusedError("Not taken", f"{of_cluster}{error}.", BAD_REQUEST) from error
    except PipelineError as error:
        raise RefusedError("Not written", f"{of_cluster}{error}.", _UNAVAILABLE) from error
    return title, f"{of_cluster}{told}"
