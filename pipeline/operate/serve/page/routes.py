"""`/`, `/group`, `/health`: the page, and its form if `serve` takes orders."""

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import pyarrow as pa
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pipeline.operate.listings.decisions import plan_story
from pipeline.operate.listings.partitions import COLUMNS, SortKey
from pipeline.operate.listings.waiting import plan_id
from pipeline.operate.output import Row, iterate
from pipeline.operate.serve.clusters import Clusters, Look, UnknownClusterError, causes, fleet_rows
from pipeline.operate.serve.order_form import BAD_REQUEST, RefusedError
from pipeline.operate.serve.orders import Desk, order_routes
from pipeline.operate.serve.page.charts import drawn
from pipeline.operate.serve.page.heat import LEVELS, heat
from pipeline.operate.serve.page.names import member_names
from pipeline.operate.serve.page.spark import spark
from pipeline.operate.serve.page.words import FILTERS
from pipeline.operate.serve.responses import respond
from pipeline.operate.serve.views.fleet import ordered
from pipeline.operate.serve.views.group import decision_rows, group_view, worst
from pipeline.operate.serve.views.health import health_row
from pipeline.operate.serve.views.history import Series
from pipeline.operate.serve.views.source import Now, Source
from pipeline.operate.statuses import WORST_FIRST

_OK, _NOT_FOUND, _UNAVAILABLE = 200, 404, 503
_ROWS, _DECISIONS, _PARTITIONS = 500, 20, 100
_HERE = "pipeline.operate.serve.page"

_SORTS: Mapping[str, SortKey] = {"group": "group", "lag": "lag", "lag_seconds": "lag_seconds"}

_Shown = tuple[str, Mapping[str, Any]]
"""Name of a template, and its values."""

_NO_CLUSTER = "No cluster of this name"
_NO_DESK = (
    "orders for this cluster are not accepted here: the configuration of its job is unknown; repeat --config, "
    "one for each cluster, and leave out --tables"
)


class _Environment(Environment):
    """Looks up `row.name` as a key first. Jinja tries attributes first, which is slow for thousands of rows."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


def page_routes(clusters: Clusters) -> Sequence[Route]:
    """Return the routes of the page, its style and script, and of orders if there is a desk for them."""
    environment = _Environment(
        loader=PackageLoader(_HERE, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(plan_story=plan_story, plan_id=plan_id, spark=spark)

    def shows(view: Callable[[Clusters, Request], tuple[int, _Shown]]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            status, (name, values) = view(clusters, request)
            # Thousands of line ends between cells would be as many nodes.
            html = environment.get_template(name).render(values).replace("\n<td", "<td")
            return respond(request, html.encode(), media_type="text/html", status=status)

        return answer

    return [
        Route("/", shows(_fleet)),
        Route("/group", shows(_group)),
        Route("/health", shows(_health)),
        Route("/static/page.css", _static("page.css", "text/css")),
        Route("/static/refresh.js", _static("refresh.js", "text/javascript")),
        *_order_routes(clusters, environment),
    ]


def _order_routes(clusters: Clusters, environment: Environment) -> Sequence[Route]:
    if clusters.token is None:
        return ()

    def desk_of(request: Request) -> Desk:
        try:
            desk = clusters.desk(request)
        except UnknownClusterError as error:
            raise RefusedError("Not taken", f"{error}.", BAD_REQUEST) from None
        if desk is None:
            raise RefusedError("Not taken", f"{_NO_DESK}.", BAD_REQUEST)
        return desk

    def answer(request: Request, title: str, text: str, *, group: str | None, status: int) -> Response:
        """Return the page that answers an order."""
        name, values = _error(title, text, group=group, cluster=clusters.link(request))
        html = environment.get_template(name).render(values)
        return respond(request, html.encode(), media_type="text/html", status=status)

    return order_routes(clusters.token, desk_of, clusters.serve, answer)


def _error(
    title: str,
    cause: str | None,
    *,
    looks: Sequence[Look] = (),
    group: str | None = None,
    cluster: str | None = None,
) -> _Shown:
    return "error.html", {"looks": looks, "title": title, "cause": cause, "group": group, "cluster": cluster}


def _unavailable(looks: Sequence[Look]) -> tuple[int, _Shown]:
    return _UNAVAILABLE, _error("Not available", causes(looks), looks=[one for one in looks if one.now])


def _fleet(clusters: Clusters, request: Request) -> tuple[int, _Shown]:
    looks, rows = fleet_rows(clusters.looks())
    try:
        chosen = clusters.chosen(request, looks)
    except UnknownClusterError as error:
        return _NOT_FOUND, _error(_NO_CLUSTER, str(error))
    drawn_of: dict[str | None, Mapping[str, Series]] = {}
    for number, look in enumerate(looks):
        looks[number], sparks = look.of(lambda source, now: source.sparks(now))
        drawn_of[look.cluster] = sparks or {}
    if not any(look.now for look in looks):
        return _unavailable(looks)
    asked = request.query_params
    sort = _SORTS.get(asked.get("sort", ""), "lag")
    filters = {name: asked.get(name, "") for name in ("q", "status")}
    filters["cluster"] = (chosen.cluster if chosen else None) or ""
    found = [row for row in rows if _is_wanted(row, **filters)]
    return _OK, (
        "fleet.html",
        {
            "looks": looks,
            "rows": ordered(found, sort)[:_ROWS],
            "found": len(found),
            "total": len(rows),
            "sort": sort,
            **filters,
            "statuses": WORST_FIRST,
            "sparks": drawn_of,
            "several": clusters.are_several,
            "not_fresh": {look.cluster for look in looks if look.now and look.now.is_old is not False},
        },
    )


def _is_wanted(row: Row, *, q: str, status: str, cluster: str) -> bool:
    if q.lower() not in row["group_id"].lower() or (status and status not in row["statuses"]):
        return False
    return not cluster or row["cluster"] == cluster


def _group(clusters: Clusters, request: Request) -> tuple[int, _Shown]:
    group_id = request.query_params.get("id", "")
    try:
        look = clusters.look(request)
    except UnknownClusterError as error:
        return _NOT_FOUND, _error(_NO_CLUSTER, str(error))
    look, shown = look.of(lambda source, now: _group_values(source, now, group_id))
    if look.now is None:
        return _unavailable([look])
    if shown is None:
        return _NOT_FOUND, _error("No group of this name", None, looks=[look])
    orders = {
        "takes_orders": look.desk is not None,
        "no_orders": _NO_DESK if clusters.are_several and clusters.serve.token else None,
    }
    return _OK, ("group.html", {"looks": [look], "cluster": look.cluster, **shown, **orders})


def _group_values(source: Source, now: Now, group_id: str) -> Row | None:
    view = group_view(now.found, source.fleet(now), group_id, source.config)
    if view is None:
        return None
    decided = list(iterate(decision_rows(now.found, group_id, _DECISIONS)))
    moves = (view.decision or {}).get("moves") or ()
    names = member_names(view.members)
    return {
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


def _health(clusters: Clusters, _request: Request) -> tuple[int, _Shown]:
    told = [look.of(lambda _, now: health_row(now)) for look in clusters.looks()]
    looks = [look for look, _ in told]
    if not any(look.now for look in looks):
        return _unavailable(looks)
    rows = [(look.cluster, row) for look, row in told if row is not None]
    return _OK, ("health.html", {"looks": looks, "rows": rows})


def _static(name: str, media_type: str) -> Callable[[Request], Response]:
    body = files(_HERE).joinpath(f"static/{name}").read_bytes()

    def static(request: Request) -> Response:
        return respond(request, body, media_type=media_type, headers={"Cache-Control": "max-age=60"})

    return static
