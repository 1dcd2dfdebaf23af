"""`/`, `/group`, `/health`: the page; and the form on it, if orders are taken."""

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import pyarrow as pa
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assignor.errors import DecodeError
from pipeline.errors import StoreError
from pipeline.operate.listings.decisions import plan_story
from pipeline.operate.listings.partitions import COLUMNS, SortKey
from pipeline.operate.listings.waiting import plan_id
from pipeline.operate.output import Row, iterate
from pipeline.operate.serve.orders import Answer, Desk, order_routes
from pipeline.operate.serve.page.charts import drawn
from pipeline.operate.serve.page.heat import LEVELS, heat
from pipeline.operate.serve.page.names import member_names
from pipeline.operate.serve.page.spark import spark
from pipeline.operate.serve.page.words import FILTERS
from pipeline.operate.serve.responses import respond
from pipeline.operate.serve.views.fleet import WORST_FIRST, ordered
from pipeline.operate.serve.views.group import decision_rows, group_view, worst
from pipeline.operate.serve.views.health import health_row
from pipeline.operate.serve.views.source import Now, Source

_OK, _NOT_FOUND, _UNAVAILABLE = 200, 404, 503
_ROWS, _DECISIONS, _PARTITIONS = 500, 20, 100
_HERE = "pipeline.operate.serve.page"

_SORTS: Mapping[str, SortKey] = {"group": "group", "lag": "lag", "lag_seconds": "lag_seconds"}

_Shown = tuple[str, Mapping[str, Any]]
"""Name of a template, and its values."""


def page_routes(source: Source, desk: Desk | None) -> Sequence[Route]:
    """Routes of the page, of its style and script, and of orders, where there is a desk for them."""
    environment = Environment(
        loader=PackageLoader(_HERE, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(
        plan_story=plan_story, plan_id=plan_id, takes_orders=desk is not None, spark=spark
    )

    def shows(view: Callable[[Source, Now, Request], _Shown | None]) -> Callable[[Request], Response]:
        return lambda request: _answer(environment, source, view, request)

    return [
        Route("/", shows(_fleet)),
        Route("/group", shows(_group)),
        Route("/health", shows(_health)),
        Route("/static/page.css", _static("page.css", "text/css")),
        Route("/static/refresh.js", _static("refresh.js", "text/javascript")),
        *(order_routes(desk, source.config.serve, _told(environment)) if desk else ()),
    ]


def _told(environment: Environment) -> Answer:
    """What is shown to who has ordered something."""

    def answer(request: Request, title: str, text: str, *, group: str | None, status: int) -> Response:
        values = {"now": None, "title": title, "cause": text, "group": group}
        html = environment.get_template("error.html").render(values)
        return respond(request, html.encode(), media_type="text/html", status=status)

    return answer


def _answer(
    environment: Environment,
    source: Source,
    view: Callable[[Source, Now, Request], _Shown | None],
    request: Request,
) -> Response:
    values: Mapping[str, Any] = {"now": None}
    shown: _Shown | None
    status = _OK
    try:
        now = source.now()
        values = {"now": now}
        shown = view(source, now, request)
    except (StoreError, DecodeError) as error:
        status, shown = (
            _UNAVAILABLE,
            ("error.html", {"title": "Not available", "cause": str(error), "group": None}),
        )
    if shown is None:
        status, shown = (
            _NOT_FOUND,
            ("error.html", {"title": "No group of this name", "cause": None, "group": None}),
        )
    name, more = shown
    html = environment.get_template(name).render({**values, **more})
    return respond(request, html.encode(), media_type="text/html", status=status)


def _fleet(source: Source, now: Now, request: Request) -> _Shown:
    asked = request.query_params
    sort = _SORTS.get(asked.get("sort", ""), "lag")
    text, status = asked.get("q", ""), asked.get("status", "")
    fleet = source.fleet(now)
    rows = [
        row
        for row in fleet.rows.values()
        if text.lower() in row["group_id"].lower() and (not status or status in row["statuses"])
    ]
    return "fleet.html", {
        "rows": ordered(rows, sort)[:_ROWS],
        "found": len(rows),
        "total": len(fleet.rows),
        "sort": sort,
        "q": text,
        "status": status,
        "statuses": WORST_FIRST,
        "sparks": source.sparks(now),
    }


def _group(source: Source, now: Now, request: Request) -> _Shown | None:
    group_id = request.query_params.get("id", "")
    view = group_view(now.found, source.fleet(now), group_id, source.config)
    if view is None:
        return None
    decided = list(iterate(decision_rows(now.found, group_id, _DECISIONS)))
    moves = (view.decision or {}).get("moves") or ()
    names = member_names(view.members)
    return "group.html", {
        "group": view.row,
        "view": view,
        "names": names,
        "heat": heat(view.members, view.partitions, moves, names),
        "levels": LEVELS,
        "statuses": WORST_FIRST,
        "decisions": decided,
        **drawn(source, now, view, decided),
        "partitions": _worst_first(view.partitions),
        "columns": [column for column in COLUMNS if not column.is_wide and column.name != "group_id"],
    }


def _worst_first(partitions: pa.Table) -> list[Row]:
    """Those with the largest lag, unknown ones first."""
    shown = iterate(worst(partitions, _PARTITIONS))
    return sorted(shown, key=lambda row: (row["lag"] is not None, -(row["lag"] or 0)))


def _health(_source: Source, now: Now, _request: Request) -> _Shown:
    return "health.html", {"health": health_row(now)}


def _static(name: str, media_type: str) -> Callable[[Request], Response]:
    body = files(_HERE).joinpath(f"static/{name}").read_bytes()

    def static(request: Request) -> Response:
        return respond(request, body, media_type=media_type, headers={"Cache-Control": "max-age=60"})

    return static
