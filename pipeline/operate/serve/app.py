"""What is answered on which path. Every answer is of the tables as they are now."""

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
from pipeline.operate.serve.gate import ALIVE, READY_PATH, Busy, Readers
from pipeline.operate.serve.orders import Desk
from pipeline.operate.serve.page.routes import page_routes
from pipeline.operate.serve.responses import RawPaths, SafeHeaders
from pipeline.operate.serve.sites import KnownHosts
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
    """The application; the tables need not be there yet.

    Args:
        tables: What is shown.
        config: Of `serve`, and of the stream that writes the tables.
        desk: Where orders of the page are taken; without it, none are.
        others: Further clusters on the same page.
        read_token: What a reader must know; without it, whoever reaches the port may read.
    """
    first = Deployment(tables=tables, config=config, desk=desk)
    clusters = Clusters([first, *others])
    # Whoever may order somewhere may read.
    readers = {token for token in (read_token, clusters.token) if token}
    app = Starlette(
        routes=[
            Route("/metrics", metrics(clusters)),
            Route(ALIVE, _alive),
            Route(READY_PATH, _ready(clusters)),
            *api_routes(clusters),
            *page_routes(clusters),
        ],
        middleware=[
            Middleware(KnownHosts, config.serve),
            *([Middleware(Readers, sorted(readers))] if read_token else []),
            Middleware(Busy),
            Middleware(RawPaths),
        ],
    )
    # Around all of it: Starlette answers 500 outside of its middleware.
    return SafeHeaders(app)


async def _alive(_request: Request) -> Response:
    """This process answers, whatever the stream does, and however many threads are at work."""
    return PlainTextResponse("ok\n")


def _ready(clusters: Clusters) -> Callable[[Request], Response]:
    def ready(_request: Request) -> Response:
        """Whether the stream keeps the tables up to date, or why not; with several clusters, whether each does."""
        if clusters.are_several:
            return _ready_of(dict(zip(clusters.names(), clusters.sources, strict=True)))
        source = clusters.sources[0]
        try:
            health = look(source.tables, source.config, now_ms=clock.now_ms())
        except StoreError as error:
            return PlainTextResponse(f"{error}\n", UNAVAILABLE)
        status = OK if health.is_ready else UNAVAILABLE
        return Response(health.to_json(), status, media_type="application/json")

    return ready


def _ready_of(sources: dict[str, Source]) -> Response:
    found = {name: _readiness(source) for name, source in sources.items()}
    is_ready = all(one["ready"] for one in found.values())
    text = json.dumps({"ready": is_ready, "clusters": found})
    return Response(f"{text}\n", OK if is_ready else UNAVAILABLE, media_type="application/json")


def _readiness(source: Source) -> Row:
    try:
        health: Row = json.loads(look(source.tables, source.config, now_ms=clock.now_ms()).to_json())
    except StoreError as error:
        return {"ready": False, "error": str(error)}
    return health
