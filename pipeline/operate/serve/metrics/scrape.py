"""One scrape: the samples of the tables as they are now, coarser if there are too many, written once per version."""

import logging
import threading
from collections.abc import Sequence

import pyarrow as pa

from pipeline.config.model import Config, Granularity
from pipeline.exposition import LAST_BATCH, PROVISIONAL, Family
from pipeline.operate.serve.metrics import families
from pipeline.operate.serve.metrics.groups import group_samples
from pipeline.operate.serve.metrics.page import Page
from pipeline.operate.serve.metrics.partitions import partition_samples, topic_samples
from pipeline.operate.serve.metrics.plans import plan_samples
from pipeline.operate.serve.metrics.text import Samples, labels_of, samples, texts_of
from pipeline.operate.serve.newest import Newest
from pipeline.operate.serve.snapshot import Snapshot, snapshot
from pipeline.operate.serve.views.facts import COLUMNS, Facts, facts, narrowed
from pipeline.tables.reading import Tables
from pipeline.tables.stamp import Stamp

log = logging.getLogger(__name__)

_COARSER: tuple[Granularity, ...] = ("partition", "topic", "group")


class Scraper:
    """Makes the page of metrics, once per version of the tables, however often it is scraped."""

    def __init__(self, tables: Tables, config: Config) -> None:
        self._tables = tables
        self._config = config
        self._lock = threading.Lock()
        self._page = Newest[tuple[int, ...], Page]()
        self._used: Granularity = config.serve.metrics.granularity

    def page(self) -> Page:
        """The page of the newest version.

        Raises:
            MissingTableError: The stream has not made the tables yet.
            StoreError: They cannot be read.
        """
        # A scrape that waits for the page of another one must not come with an older version than that.
        with self._lock:
            found = snapshot(self._tables, COLUMNS)
            return self._page.of(found.versions, lambda: self._made(found))

    def _made(self, found: Snapshot) -> Page:
        metrics = self._config.serve.metrics
        rows = narrowed(facts(found, self._config), metrics)
        by_granularity: dict[Granularity, list[Samples]] = {
            "partition": list(partition_samples(rows, metrics)),
            "topic": list(topic_samples(rows, metrics)),
            "group": [*group_samples(rows, metrics), *plan_samples(rows)],
        }
        wanted = _COARSER[_COARSER.index(metrics.granularity) :]
        series = {name: sum(one.count for one in by_granularity[name]) for name in wanted}
        used: Granularity = next((g for g in wanted if _total(series, g) <= metrics.max_series), "group")
        self._tell(used, series)
        shown = [one for name in wanted[wanted.index(used) :] for one in by_granularity[name]]
        stamp = found.stamp
        return Page(
            clusters=tuple(rows.planner_state["cluster"].to_pylist()),
            stamp=stamp,
            texts=texts_of([*shown, *self._own(rows, stamp, used, series)]),
        )

    def _tell(self, used: Granularity, series: dict[Granularity, int]) -> None:
        """Log a change; the figures of each scrape show it, too."""
        if used == self._used:
            return
        self._used = used
        log.warning(
            "metrics are coarser or finer than before, because of serve.metrics.max_series",
            extra={
                "granularity": used,
                "configured": self._config.serve.metrics.granularity,
                "series": sum(series.values()),
                "max_series": self._config.serve.metrics.max_series,
                "hint": "leave out families, groups or topics that nobody needs, or raise max_series",
            },
        )

    def _own(
        self, rows: Facts, stamp: Stamp | None, used: Granularity, series: dict[Granularity, int]
    ) -> Sequence[Samples]:
        owner = rows.planner_state
        labels = labels_of(owner, cluster_name="cluster")

        def each(family: Family, value: float | None) -> Samples:
            return samples(family, labels, pa.array([value] * owner.num_rows, pa.float64()))

        brokers = None if stamp is None else stamp.brokers
        is_exporter = "kafka_exporter" in self._config.serve.metrics.families
        exporter = [each(families.EXPORTER_BUILD, 1), each(families.EXPORTER_BROKERS, brokers)]
        return [
            *(exporter if is_exporter else []),
            each(LAST_BATCH, None if stamp is None else stamp.at_ms / 1000),
            each(PROVISIONAL, None if stamp is None else len(stamp.behind)),
            samples(families.DRIVER_TERM, labels, owner["term"]),
            each(families.DEGRADED, int(used != self._config.serve.metrics.granularity)),
            each(families.SERIES, sum(series.values())),
        ]


def _total(series: dict[Granularity, int], granularity: Granularity) -> int:
    """Number of series at this granularity, with those of coarser ones."""
    return sum(series[name] for name in _COARSER[_COARSER.index(granularity) :])
