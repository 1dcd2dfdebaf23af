"""The names and labels that Prometheus can be given, taken from the code that writes them."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

from pipeline import exposition
from pipeline.config.model import Config
from pipeline.exposition import LIVE, READY, Family
from pipeline.operate.serve.metrics import families, scrape
from pipeline.operate.serve.metrics.text import Samples
from pipeline.run.health import text
from pipeline.run.health.monitor import Monitor
from pipeline.tables.reading import Tables
from tests.support.operate.prometheus_text import parse
from tests.support.operate.table_world import World
from tests.unit.pipeline.run.health.test_monitor import figures

Exposed = dict[str, frozenset[str]]
"""Labels by name, without those of the target."""

TARGET = frozenset({"job", "namespace", "instance", "pod"})
"""`pod` is given in Kubernetes."""

_AT_EACH_MOMENT = {LIVE, READY, families.TABLES_AGE, families.SEGLO_POLL_TIME}
_OF_SEVERAL = families.TABLES_READABLE
_OF_HISTOGRAMS = ("_bucket", "_sum", "_count")


def exposed(folder: Path) -> Exposed:
    """All of `serve`, of the driver, and of Prometheus itself about a target."""
    of_serve, of_driver = served(folder), of_the_driver()
    names = of_serve.keys() | of_driver.keys()
    own = {name: of_serve.get(name, frozenset()) | of_driver.get(name, frozenset()) for name in names}
    return {**own, "up": frozenset()}


def served(folder: Path) -> Exposed:
    """What `serve` writes of several clusters' tables without rows, whose samples have their labels all the same."""
    world, seen = World(folder), list[Samples]()
    world.complete()

    def keep(found: Iterable[Samples]) -> dict[Family, bytes]:
        seen.extend(found)
        return {}

    with patch.object(scrape, "texts_of", keep):
        scrape.Scraper(Tables(str(world.root)), Config()).page()
    found = {one.family.name: frozenset(one.labels._columns) for one in seen}
    rest = {one.name for one in _families()} - found.keys()
    assert rest == {one.name for one in (*_AT_EACH_MOMENT, _OF_SEVERAL)}
    labels = dict.fromkeys(rest, frozenset({"cluster_name"}))
    of_one = {**found, **labels, _OF_SEVERAL.name: frozenset[str]()}
    return {name: own | {"cluster"} for name, own in of_one.items()}


def of_the_driver() -> Exposed:
    """What the driver says of itself after a batch."""
    monitor = Monitor()
    monitor.owns("c", "host/7/1", 1)
    monitor.batch_ended(figures(decisions=[("abstain", "held back by lag: there is none")]))
    found = defaultdict[str, frozenset[str]](frozenset)
    for name, labels in parse(text.metrics(monitor)).values:
        found[name] |= {label for label, _ in labels}
    return dict(found)


def _families() -> list[Family]:
    return [
        one for module in (families, exposition) for one in vars(module).values() if isinstance(one, Family)
    ]
