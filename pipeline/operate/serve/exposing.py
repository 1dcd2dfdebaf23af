"""`/metrics`: samples from the tables, made once per version, and samples that change with time; for all clusters."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pipeline import clock
from pipeline.config.model import Config
from pipeline.errors import StoreError
from pipeline.exposition import CONTENT_TYPE, LIVE, READY, Family
from pipeline.operate.health import sight
from pipeline.operate.serve.clusters import Clusters
from pipeline.operate.serve.metrics import families
from pipeline.operate.serve.metrics.page import Page, joined
from pipeline.operate.serve.metrics.scrape import Scraper
from pipeline.operate.serve.newest import Newest
from pipeline.operate.serve.views.source import Source
from pipeline.tables.owner.health import Sight, judge

log = logging.getLogger(__name__)

_UNAVAILABLE = 503
_Labels = tuple[tuple[str, str], ...]
_Moment = Mapping[Family, Mapping[_Labels, float | None]]


def metrics(clusters: Clusters) -> Callable[[Request], Response]:
    """The answer to a scrape."""
    pages = _Pages(clusters)

    def answer(request: Request) -> Response:
        try:
            page, moment = pages.now()
        except StoreError as error:
            # Prometheus keeps the status of a failed scrape, but not the reason.
            log.warning("metrics cannot be made", extra={"error": str(error)})
            return PlainTextResponse(f"{error}\n", _UNAVAILABLE)
        more = "".join(family.text(values) for family, values in moment.items()).encode()
        headers = {"Content-Type": CONTENT_TYPE, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            return Response(page.gzip(more), headers={**headers, "Content-Encoding": "gzip"})
        return Response(page.plain(more), headers=headers)

    return answer


class _Pages:
    """The pages of all clusters."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._scrapers = [(source, Scraper(source.tables, source.config)) for source in clusters.sources]
        self._joined = Newest[Mapping[str, Page], Page]()

    def now(self) -> tuple[Page, _Moment]:
        """The page of the newest versions, and the samples that change with time.

        Raises:
            StoreError: No tables can be read.
        """
        if not self._clusters.are_several:
            source, scraper = self._scrapers[0]
            page = scraper.page()
            return page, _moment({"": (source, page)}, several=False)
        pages, errors = dict[str, tuple[Source, Page]](), dict[str, StoreError]()
        for name, (source, scraper) in zip(self._clusters.names(), self._scrapers, strict=True):
            try:
                pages[name] = source, scraper.page()
            except StoreError as error:
                log.warning(
                    "metrics of a cluster cannot be made", extra={"cluster": name, "error": str(error)}
                )
                errors[name] = error
        if not pages:
            raise StoreError("; ".join(map(str, errors.values())))
        moment = _moment(pages, several=True)
        readable: dict[_Labels, float | None] = {
            (("cluster", name),): float(name in pages) for name in (*pages, *errors)
        }
        of_all = {name: page for name, (_, page) in pages.items()}
        joint = self._joined.of(of_all, lambda: joined(of_all))
        return joint, {families.TABLES_READABLE: readable, **moment}


def _moment(pages: Mapping[str, tuple[Source, Page]], *, several: bool) -> _Moment:
    """Samples that change with time although the tables do not."""
    found: dict[Family, dict[_Labels, float | None]] = defaultdict(dict)
    now_ms = clock.now_ms()
    for cluster, (source, page) in pages.items():
        own = (("cluster", cluster),) if several else ()
        for family, value in _values(source, page, now_ms=now_ms):
            found[family] |= {(*own, ("cluster_name", name)): value for name in page.clusters}
    return found


def _values(source: Source, page: Page, *, now_ms: int) -> Iterator[tuple[Family, float | None]]:
    stamp = page.stamp
    yield families.TABLES_AGE, None if stamp is None else stamp.age_s(now_ms)
    try:
        seen = sight(source.tables, stamp, source.config)
    except StoreError as error:
        log.warning("the health of the stream is unknown", extra={"error": str(error)})
    else:
        yield from _health(seen, source.config, now_ms=now_ms)


def _health(seen: Sight, config: Config, *, now_ms: int) -> Iterator[tuple[Family, float | None]]:
    health = judge(seen, now_ms=now_ms)
    if health.is_live is not None:
        yield LIVE, float(health.is_live)
        yield READY, float(health.is_ready)
    report = seen.beat.report if seen.beat else None
    if "seglo" in config.serve.metrics.families and report is not None and report.batch_s is not None:
        yield families.SEGLO_POLL_TIME, report.batch_s * 1000
