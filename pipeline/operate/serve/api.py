"""`/api/v1/…`: what the page shows, as JSON. Reads only.

Rows have the names of the tables' columns, and are those of `-o json` of the commands. Each answer says of when it is
(`observed_at`) and whether that is old (`is_old`); header `Age` says how old. null is unknown, or none.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assignor.errors import DecodeError
from pipeline.errors import StoreError
from pipeline.operate.output import Row, iterate
from pipeline.operate.serve.paging import MOST_OF_A_PAGE, PAGE, Place, page_of, place_of, token_of
from pipeline.operate.serve.responses import has_it, json_bytes, not_modified, respond
from pipeline.operate.serve.views.fleet import ordered
from pipeline.operate.serve.views.group import decision_rows, group_view, lag_rows
from pipeline.operate.serve.views.health import health_row
from pipeline.operate.serve.views.source import Now, Source

_JSON = "application/json"
_BAD_REQUEST, _NOT_FOUND, _UNAVAILABLE = 400, 404, 503
_DECISIONS, _MOST_DECISIONS = 20, 1_000
_NUMBER = re.compile(r"[0-9]{1,5}", re.ASCII)
_NO_GROUP = "no group of this name"


class _UsageError(Exception):
    """What was asked for cannot be."""


_Rows = Callable[[Source, Now, Request], Row | None]


def api_routes(source: Source) -> Sequence[Route]:
    """Routes of the API."""
    group = "/api/v1/groups/{group}"
    return [
        Route("/api/v1/groups", _answering(source, _groups)),
        Route(group, _answering(source, _group)),
        Route(f"{group}/partitions", _answering(source, _partitions)),
        Route(f"{group}/decisions", _answering(source, _decisions)),
        Route("/api/v1/health", _health(source)),
    ]


def group_of(request: Request) -> str:
    """The group that the path names."""
    return unquote(request.path_params["group"])


def _groups(source: Source, now: Now, _request: Request) -> Row:
    return {"groups": ordered(list(source.fleet(now).rows.values()), "group")}


def _group(source: Source, now: Now, request: Request) -> Row | None:
    view = group_view(now.found, source.fleet(now), group_of(request), source.config)
    if view is None:
        return None
    return {
        "group": view.row,
        "members": view.members or (None if view.row["member_count"] is None else []),
        "decision": view.decision,
        "orders": view.orders,
        "advice": view.advice,
    }


def _partitions(source: Source, now: Now, request: Request) -> Row | None:
    limit, after = _count(request, "limit", PAGE, MOST_OF_A_PAGE), _after(request)
    if group_of(request) not in source.fleet(now).rows:
        return None
    rows = lag_rows(now.found, group_of(request))
    page = page_of(rows, after=after, limit=limit)
    return {
        "partitions": list(iterate(page.rows)),
        "total": rows.num_rows,
        "next": None if page.last is None else _next(request, page.last),
    }


def _after(request: Request) -> Place | None:
    token = request.query_params.get("after")
    try:
        return None if token is None else place_of(token)
    except ValueError:
        raise _UsageError(
            "after is what `next` of the page before has; leave it out for the first page"
        ) from None


def _next(request: Request, last: Place) -> str:
    more = {**request.query_params, "after": token_of(last)}
    return f"{request.scope['raw_path'].decode('ascii')}?{urlencode(more)}"


def _decisions(source: Source, now: Now, request: Request) -> Row | None:
    last = _count(request, "last", _DECISIONS, _MOST_DECISIONS)
    if group_of(request) not in source.fleet(now).rows:
        return None
    return {"decisions": list(iterate(decision_rows(now.found, group_of(request), last)))}


def _count(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (_NUMBER.fullmatch(text) and 1 <= int(text) <= most):
        raise _UsageError(f"{name} is a number from 1 to {most}")
    return int(text)


def _answering(source: Source, rows: _Rows) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        try:
            now = source.now()
            headers = _headers(source, now)
            if has_it(request, headers["ETag"]):
                return not_modified(headers)
            found = rows(source, now, request)
        except _UsageError as error:
            return _error(request, str(error), _BAD_REQUEST)
        except (StoreError, DecodeError) as error:
            return _error(request, str(error), _UNAVAILABLE)
        if found is None:
            return _error(request, _NO_GROUP, _NOT_FOUND)
        value = {"observed_at": now.observed_at, "is_old": now.is_old, **found}
        if found.get("next"):
            headers["Link"] = f'<{found["next"]}>; rel="next"'
        return respond(request, json_bytes(value), media_type=_JSON, headers=headers)

    return answer


def _headers(source: Source, now: Now) -> dict[str, str]:
    headers = {"ETag": source.etag(now), "Cache-Control": "no-cache"}
    return headers if now.age_s is None else {**headers, "Age": f"{now.age_s:.0f}"}


def _health(source: Source) -> Callable[[Request], Response]:
    def health(request: Request) -> Response:
        try:
            row: dict[str, Any] = health_row(source.now())
        except StoreError as error:
            return _error(request, str(error), _UNAVAILABLE)
        return respond(request, json_bytes(row), media_type=_JSON)

    return health


def _error(request: Request, cause: str, status: int) -> Response:
    return respond(request, json_bytes({"error": cause}), media_type=_JSON, status=status)
