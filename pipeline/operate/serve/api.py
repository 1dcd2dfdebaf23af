"""`/api/v1/…`: what the page shows, as JSON. Reads only.

Rows have the names of the tables' columns, and are those of `-o json` of the commands. Each answer says of when it is
(`observed_at`) and whether that is old (`is_old`); header `Age` says how old. null is unknown, or none.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assignor.errors import DecodeError
from pipeline.errors import StoreError
from pipeline.operate.output import Row, iterate
from pipeline.operate.serve.responses import has_it, json_bytes, not_modified, respond
from pipeline.operate.serve.views.fleet import ordered
from pipeline.operate.serve.views.group import decision_rows, group_view, lag_rows
from pipeline.operate.serve.views.health import health_row
from pipeline.operate.serve.views.source import Now, Source

_JSON = "application/json"
_BAD_REQUEST, _NOT_FOUND, _UNAVAILABLE = 400, 404, 503
_DECISIONS, _MOST_DECISIONS = 20, 1_000
_LAST = re.compile(r"[0-9]{1,4}", re.ASCII)
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
        "members": view.members,
        "decision": view.decision,
        "orders": view.orders,
        "advice": view.advice,
    }


def _partitions(source: Source, now: Now, request: Request) -> Row | None:
    if group_of(request) not in source.fleet(now).rows:
        return None
    return {"partitions": list(iterate(lag_rows(now.found, group_of(request))))}


def _decisions(source: Source, now: Now, request: Request) -> Row | None:
    last = _last(request)
    if group_of(request) not in source.fleet(now).rows:
        return None
    return {"decisions": list(iterate(decision_rows(now.found, group_of(request), last)))}


def _last(request: Request) -> int:
    text = request.query_params.get("last", str(_DECISIONS))
    if not (_LAST.fullmatch(text) and 1 <= int(text) <= _MOST_DECISIONS):
        raise _UsageError(f"last is a number from 1 to {_MOST_DECISIONS}")
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
