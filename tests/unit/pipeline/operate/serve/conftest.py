from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.model import Config, MetricsConfig, ServeConfig
from pipeline.operate.serve.metrics.scrape import Scraper
from pipeline.tables.reading import Tables
from tests.support.operate.cluster_world import cluster_world
from tests.support.operate.prometheus_text import Scrape, parse
from tests.support.operate.table_world import World


@pytest.fixture
def scraper(world: World) -> Callable[..., Scraper]:
    """A scraper of the tables, all of which are there, with these settings of `[serve.metrics]`."""

    def _scraper(**metrics: Any) -> Scraper:
        world.complete()
        return Scraper(Tables(str(world.root)), Config(serve=ServeConfig(metrics=MetricsConfig(**metrics))))

    return _scraper


@pytest.fixture
def scrape(scraper: Callable[..., Scraper]) -> Callable[..., Scrape]:
    """What a scrape of the tables says."""

    def _scrape(**metrics: Any) -> Scrape:
        return parse(scraper(**metrics).page().plain(b"").decode())

    return _scrape


@pytest.fixture
def eu(tmp_path: Path) -> World:
    """Tables of a cluster eu."""
    return cluster_world(tmp_path / "eu", "eu", lag=70)


@pytest.fixture
def us(tmp_path: Path) -> World:
    """Tables of a cluster us."""
    return cluster_world(tmp_path / "us", "us", lag=5)
