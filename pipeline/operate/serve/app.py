"""Routes and middleware. Every answer shows the tables as they are now."""

import json
from collections.abc import Callable, Sequence

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from pipeline import clock
from pipeline.config.model import Config
from pipeline.errors import StoreError
from pipeline.operate.health import look
from pipeline.operate.output import Row
from pipeline.operate.serve.api import api_routes
from pipeline.operate.serve.clusters import Clusters, Deployment
from pipeline.operate.serve.exposing import metrics
from pipeline.operate.serve.gate import ALIVE, READY_PATH, Busy, Gate, readers
from pipeline.operate.serve.orders import Desk
from pipeline.operate.serve.page.routes import page_routes
from pipeline.operate.serve.responses import RawPaths, SafeHeaders
from pipeline.operate.serve.sites import known_hosts
from pipeline.operate.serve.views.source import Source
from pipeline.tables.reading import Tables

OK, UNAVAILABLE = 200, 503


def build_app(
    tables: Tables,
    config: Config,
    desk: Desk | None = None,
    *,
    others: Sequence[Deployment] = (),
    read_token: str | None = None,
) -> ASGIApp:
    """The application; the tables need not exist yet.

    Args:
        tables: The tables to show.
        config: Configuration of `serve` and of the stream that writes the tables.
        desk: Accepts orders from the page; without it, the page takes none.
        others: Further clusters on the same page.
        read_token: Token required of readers; without it, anyone who reaches the port may read.
    """
    first = Deployment(tables=tables, config=config, desk=desk)
    clusters = Clusters([first, *others])
    # A token for orders of any cluster may read, too.
    tokens = {token for token in (read_token, clusters.token) if token}
    app = Starlette(
        routes=[
            Route("/metrics", metrics(clusters)),
            Route(ALIVE, _alive),
            Route(READY_PATH, _ready(clusters)),
            *api_routes(clusters),
            *page_routes(clusters),
        ],
        middleware=[
            Middleware(Gate, known_hosts(config.serve)),
            *([Middleware(Gate, readers(tokens))] if read_token else []),
            Middleware(Busy),
            Middleware(RawPaths),
        ],
    )
    # The outermost layer, because Starlette answers 500 outside its middleware.
    return SafeHeaders(app)


async def _alive(_request: Request) -> Response:
    """Answer at once, whatever the stream does and however many threads are busy."""
    return PlainTextResponse("ok\n")


def _ready(clusters: Clusters) -> Callable[[Request], Response]:
    def ready(_request: Request) -> Response:
        """Answer whether the stream keeps the tables up to date, or why not; with several clusters, for each."""
        found = [_readiness(source) for source in clusters.sources]
        status = OK if all(one["ready"] for one in found) else UNAVAILABLE
        if clusters.are_several:
            answer = {"ready": status == OK, "clusters": dict(zip(clusters.names(), found, strict=True))}
        elif "error" in found[0]:
            return PlainTextResponse(f"{found[0]['error']}\n", status)
        else:
            answer = found[0]
        return Response(f"{json.dumps(answer)}\n", status, media_type="application/json")

    return ready


def _readiness(source: Source) -> Row:
    try:
        health: Row = json.loads(look(source.tables, source.config, now_ms=clock.now_ms()).to_json())
    except StoreError as error:
        return {"ready": False, "error": str(error)}
    return health
