"""`/api/v1/…`: the contents of the page as JSON, read-only.

Rows have the names of the tables' columns, as `-o json` of the commands. Each answer has its time (`observed_at`) and
whether that is old (`is_old`); header `Age` has its age. null is unknown, or none.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import unquote, urlencode
from zlib import crc32

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assignor.errors import DecodeError
from pipeline.errors import StoreError
from pipeline.operate.output import Row, iterate
from pipeline.operate.serve.clusters import (
    PARAMETER,
    Clusters,
    Look,
    UnknownClusterError,
    causes,
    fleet_rows,
    observed,
)
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
    """The request is invalid."""


_Rows = Callable[[Source, Now, Request], Row | None]


def api_routes(clusters: Clusters) -> Sequence[Route]:
    """Routes of the API."""
    group = "/api/v1/groups/{group}"
    return [
        Route("/api/v1/groups", partial(_groups, clusters)),
        Route(group, _answering(clusters, _group)),
        Route(f"{group}/partitions", _answering(clusters, _partitions)),
        Route(f"{group}/decisions", _answering(clusters, _decisions)),
        Route("/api/v1/health", partial(_health, clusters)),
    ]


def group_of(request: Request) -> str:
    """The group in the path."""
    return unquote(request.path_params["group"])


def _groups(clusters: Clusters, request: Request) -> Response:
    try:
        looks = clusters.asked(request)
    except UnknownClusterError as error:
        return _error(request, str(error), _BAD_REQUEST)
    if has_it(request, _etag(looks)):
        return not_modified(_headers(looks))
    looks, rows = fleet_rows(looks)
    if not any(look.now for look in looks):
        return _error(request, causes(looks), _UNAVAILABLE)
    of_each = {"clusters": [_told(look) for look in looks]} if clusters.are_several else {}
    value = {**observed(looks), **of_each, "groups": ordered(rows, "group")}
    return respond(request, json_bytes(value), media_type=_JSON, headers=_headers(looks))


def _told(look: Look) -> Row:
    return {"cluster": look.cluster, **observed([look]), "error": look.error}


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
    page, last = page_of(rows, after=after, limit=limit)
    return {
        "partitions": list(iterate(page)),
        "total": rows.num_rows,
        "next": None if last is None else _next(request, last),
    }


def _after(request: Request) -> Place | None:
    token = request.query_params.get("after")
    try:
        return None if token is None else place_of(token)
    except ValueError:
        raise _UsageError(
            "after takes the value of `next` from the page before; leave it out for the first page"
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


def _answering(clusters: Clusters, rows: _Rows) -> Callable[[Request], Response]:
    """Handler of requests about one cluster."""

    def answer(request: Request) -> Response:
        try:
            look = clusters.look(request)
            if look.now is None:
                return _error(request, causes([look]), _UNAVAILABLE)
            headers = _headers([look])
            if has_it(request, headers["ETag"]):
                return not_modified(headers)
            found = rows(look.source, look.now, request)
        except (_UsageError, UnknownClusterError) as error:
            return _error(request, str(error), _BAD_REQUEST)
        except (StoreError, DecodeError) as error:
            return _error(request, str(error), _UNAVAILABLE)
        if found is None:
            return _error(request, _NO_GROUP, _NOT_FOUND)
        value = {**observed([look]), **_cluster(look), **found}
        if found.get("next"):
            headers["Link"] = f'<{found["next"]}>; rel="next"'
        return respond(request, json_bytes(value), media_type=_JSON, headers=headers)

    return answer


def _cluster(look: Look) -> Row:
    return {} if look.cluster is None else {"cluster": look.cluster}


def _headers(looks: Sequence[Look]) -> dict[str, str]:
    headers = {"ETag": _etag(looks), "Cache-Control": "no-cache"}
    ages = [look.now.age_s if look.now else None for look in looks]
    known = [age for age in ages if age is not None]
    return {**headers, "Age": f"{max(known):.0f}"} if len(known) == len(ages) else headers


def _etag(looks: Sequence[Look]) -> str:
    """The same for the same answer to the same question."""
    # The tag of a failure is valid as long as the failure.
    tags = (
        look.source.tag(look.now) if look.now else f"{crc32(str(look.error).encode()):x}" for look in looks
    )
    return f'W/"{".".join(tags)}"'


def _health(clusters: Clusters, request: Request) -> Response:
    try:
        told = [look.of(lambda _, now: health_row(now)) for look in clusters.asked(request)]
    except UnknownClusterError as error:
        return _error(request, str(error), _BAD_REQUEST)
    if not any(look.now for look, _ in told):
        return _error(request, causes([look for look, _ in told]), _UNAVAILABLE)
    rows = [{**_cluster(look), **({"error": look.error} if row is None else row)} for look, row in told]
    is_of_all = clusters.are_several and PARAMETER not in request.query_params
    value = {"clusters": rows} if is_of_all else rows[0]
    return respond(request, json_bytes(value), media_type=_JSON)


def _error(request: Request, cause: str, status: int) -> Response:
    return respond(request, json_bytes({"error": cause}), media_type=_JSON, status=status)
