"""What is answered on which path. Every answer is of the tables as they are now."""

import logging
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from pipeline import clock
from pipeline.config.model import Config
from pipeline.errors import StoreError
from pipeline.exposition import CONTENT_TYPE, LIVE, READY, Family
from pipeline.operate.health import look, sight
from pipeline.operate.serve.api import api_routes
from pipeline.operate.serve.gate import ALIVE, READY_PATH, Busy, Readers
from pipeline.operate.serve.metrics import families
from pipeline.operate.serve.metrics.page import Page
from pipeline.operate.serve.metrics.scrape import Scraper
from pipeline.operate.serve.orders import Desk
from pipeline.operate.serve.page.routes import page_routes
from pipeline.operate.serve.responses import RawPaths, SafeHeaders
from pipeline.operate.serve.sites import KnownHosts
from pipeline.operate.serve.views.source import Source
from pipeline.tables.owner.health import Sight, judge
from pipeline.tables.reading import Tables

log = logging.getLogger(__name__)

OK, UNAVAILABLE = 200, 503


def build_app(
    tables: Tables, config: Config, desk: Desk | None = None, *, read_token: str | None = None
) -> ASGIApp:
    """The application; the tables need not be there yet.

    Args:
        tables: What is shown.
        config: Of `serve`, and of the stream that writes the tables.
        desk: Where orders of the page are taken; without it, none are.
        read_token: What a reader must know; without it, whoever reaches the port may read.
    """
    source = Source(tables, config)
    readers = [token for token in (read_token, desk.token if desk else None) if token]
    app = Starlette(
        routes=[
            Route("/metrics", _metrics(Scraper(tables, config), tables, config)),
            Route(ALIVE, _alive),
            Route(READY_PATH, _ready(tables, config)),
            *api_routes(source),
            *page_routes(source, desk),
        ],
        middleware=[
            Middleware(KnownHosts, config.serve),
            *([Middleware(Readers, readers)] if read_token else []),
            Middleware(Busy),
            Middleware(RawPaths),
        ],
    )
    # Around all of it: Starlette answers 500 outside of its middleware.
    return SafeHeaders(app)


def _metrics(scraper: Scraper, tables: Tables, config: Config) -> Callable[[Request], Response]:
    def metrics(request: Request) -> Response:
        try:
            page = scraper.page()
        except StoreError as error:
            # Prometheus keeps the status of a scrape that failed, and not the reason.
            log.warning("metrics cannot be made", extra={"error": str(error)})
            return PlainTextResponse(f"{error}\n", UNAVAILABLE)
        more = _now(page, tables, config, now_ms=clock.now_ms()).encode()
        headers = {"Content-Type": CONTENT_TYPE, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            return Response(page.gzip(more), headers={**headers, "Content-Encoding": "gzip"})
        return Response(page.plain(more), headers=headers)

    return metrics


def _now(page: Page, tables: Tables, config: Config, *, now_ms: int) -> str:
    """What is different at each moment, with the same tables."""
    stamp = page.stamp
    values = {families.TABLES_AGE: None if stamp is None else stamp.age_s(now_ms)}
    try:
        seen = sight(tables, stamp, config)
    except StoreError as error:
        log.warning("the health of the stream is unknown", extra={"error": str(error)})
    else:
        values |= _health(seen, config, now_ms=now_ms)
    return "".join(
        family.text({(("cluster_name", name),): value for name in page.clusters})
        for family, value in values.items()
    )


def _health(seen: Sight, config: Config, *, now_ms: int) -> dict[Family, float | None]:
    health = judge(seen, now_ms=now_ms)
    values: dict[Family, float | None] = {
        LIVE: float(health.is_live),
        READY: float(health.is_ready),
    }
    report = seen.beat.report if seen.beat else None
    if "seglo" in config.serve.metrics.families and report is not None and report.batch_s is not None:
        values[families.SEGLO_POLL_TIME] = report.batch_s * 1000
    return values


async def _alive(_request: Request) -> Response:
    """This process answers, whatever the stream does, and however many threads are at work."""
    return PlainTextResponse("ok\n")


def _ready(tables: Tables, config: Config) -> Callable[[Request], Response]:
    def ready(_request: Request) -> Response:
        """Whether the stream keeps the tables up to date, or why not."""
        try:
            health = look(tables, config, now_ms=clock.now_ms())
        except StoreError as error:
            return PlainTextResponse(f"{error}\n", UNAVAILABLE)
        status = OK if health.is_ready else UNAVAILABLE
        return Response(health.to_json(), status, media_type="application/json")

    return ready
