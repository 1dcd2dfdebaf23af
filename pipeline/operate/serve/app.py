"""What is answered on which path. Every answer is of the tables as they are now."""

import time
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from pipeline.config.model import Config
from pipeline.errors import StoreError
from pipeline.exposition import CONTENT_TYPE
from pipeline.operate.serve.metrics import families
from pipeline.operate.serve.metrics.page import Page
from pipeline.operate.serve.metrics.scrape import Scraper
from pipeline.tables.reading import Tables

UNAVAILABLE = 503


def build_app(tables: Tables, config: Config) -> Starlette:
    """The application; the tables need not be there yet.

    Args:
        tables: What is shown.
        config: Of `serve`, and of the stream that writes the tables.
    """
    return Starlette(routes=[Route("/metrics", _metrics(Scraper(tables, config))), Route("/healthz", _alive)])


def _metrics(scraper: Scraper) -> Callable[[Request], Response]:
    def metrics(request: Request) -> Response:
        try:
            page = scraper.page()
        except StoreError as error:
            return PlainTextResponse(f"{error}\n", UNAVAILABLE)
        more = _age(page).encode()
        headers = {"Content-Type": CONTENT_TYPE, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            return Response(page.gzip(more), headers={**headers, "Content-Encoding": "gzip"})
        return Response(page.plain(more), headers=headers)

    return metrics


def _age(page: Page) -> str:
    if page.stamp is None:
        return ""
    # Clocks of two hosts may differ by more than a batch is old.
    age_s = max(0.0, time.time() - page.stamp.at_ms / 1000)
    return families.TABLES_AGE.text({(("cluster_name", name),): age_s for name in page.clusters})


def _alive(_request: Request) -> Response:
    """This process answers, whatever the stream does."""
    return PlainTextResponse("ok\n")
