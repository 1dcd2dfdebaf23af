"""What a scrape of `lagwise serve` costs: a page of metrics made anew from the tables, compressed, and served again.

And what its page costs: all groups, of a new version and again, and one of them.
Groups of 100 partitions and 12 members each, ten groups on a topic, everything known.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from pipeline.config.model import Config, MetricsConfig, ServeConfig
from pipeline.operate.serve.app import OK, build_app
from pipeline.operate.serve.metrics.scrape import Scraper
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import TABLES
from tests.support.operate.asgi import ask

Say = Callable[[str], None]

_HEADER = ["group-partitions", "series", "read and made s", "compressed s", "MB", "MB compressed", "again s"]
_PAGE_HEADER = ["group-partitions", "groups", "first s", "again s", "one group s", "as JSON s"]
_PARTITIONS, _MEMBERS, _GROUPS_OF_A_TOPIC = 100, 12, 10
_ALL = Config(serve=ServeConfig(metrics=MetricsConfig(max_series=10_000_000)))
_NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Seconds and sizes by number of group-partitions; the goals are 0.3 s for 10,000, and 2 s for 100,000.

    That of the page is 1 s for 10,000.
    """
    rows, pages = [], []
    for pairs in (10_000,) if quick else (10_000, 100_000):
        with tempfile.TemporaryDirectory() as root:
            _write(root, pairs)
            rows.append(_figures(root, pairs, runs=3 if quick else 7))
            pages.append(_page_figures(root, pairs, runs=3 if quick else 7))
        for header, row in ((_HEADER, rows[-1]), (_PAGE_HEADER, pages[-1])):
            say(", ".join(f"{what}: {value}" for what, value in zip(header, row, strict=True)))
    return {"tables": [{"header": _HEADER, "rows": rows}, {"header": _PAGE_HEADER, "rows": pages}]}


def _page_figures(root: str, pairs: int, *, runs: int) -> list[Any]:
    seconds: list[list[float]] = []
    for _ in range(runs):
        app = build_app(Tables(root), _ALL)
        times = []
        for path in ("/", "/", "/group?id=group-00001", "/api/v1/groups/group-00001"):
            start = time.perf_counter()
            assert ask(app, path, accept_encoding="gzip").status == OK
            times.append(time.perf_counter() - start)
        seconds.append(times)
    medians = [round(statistics.median(column), 3) for column in zip(*seconds, strict=True)]
    return [pairs, pairs // _PARTITIONS, *medians]


def _figures(root: str, pairs: int, *, runs: int) -> list[Any]:
    seconds: list[tuple[float, ...]] = []
    for _ in range(runs):
        scraper = Scraper(Tables(root), _ALL)
        times = [time.perf_counter()]
        page = scraper.page()
        times.append(time.perf_counter())
        packed = page.gzip(b"")
        times.append(time.perf_counter())
        scraper.page().gzip(b"")
        times.append(time.perf_counter())
        seconds.append(tuple(np.diff(times).tolist()))
    made, compressed, again = (round(statistics.median(column), 3) for column in zip(*seconds, strict=True))
    text = page.plain(b"")
    series = sum(not line.startswith(b"#") for line in text.splitlines())
    return [pairs, series, made, compressed, round(len(text) / 1e6, 2), round(len(packed) / 1e6, 2), again]


def _write(root: str, pairs: int) -> None:
    number = np.arange(pairs)
    group, partition, owner = number // _PARTITIONS, number % _PARTITIONS, number % _MEMBERS
    random = np.random.default_rng(1)
    topics = pairs // _PARTITIONS // _GROUPS_OF_A_TOPIC
    _table(
        root,
        "partition_lag",
        pairs,
        group_id=[f"group-{one:05d}" for one in group],
        topic=[f"topic-{one % topics:03d}" for one in group],
        partition=partition,
        client_id=[f"client-{one}" for one in owner],
        client_host=[f"/10.0.0.{one}" for one in owner],
        member_id=[f"client-{one}-0b5b2f8e-6d1e-4f0e-9a51-{one:012d}" for one in owner],
        lag=random.integers(0, 1_000_000, pairs),
        lag_seconds=random.random(pairs) * 500,
        committed_offset=number * 1_000,
        arrival_rate=random.random(pairs) * 100,
        drain_rate=random.random(pairs) * 100,
        status=["OK"] * pairs,
    )
    n_logs = topics * _PARTITIONS
    log = np.arange(n_logs)
    _table(
        root,
        "topic_offsets",
        n_logs,
        topic=[f"topic-{one // _PARTITIONS:03d}" for one in log],
        partition=log % _PARTITIONS,
        log_start_offset=log,
        log_end_offset=log * 1_000,
    )
    n_groups = pairs // _PARTITIONS
    names = [f"group-{one:05d}" for one in range(n_groups)]
    members = [{"member_id": f"m-{n}", "client_id": f"client-{n}", "assigned": []} for n in range(_MEMBERS)]
    _table(
        root,
        "consumer_groups",
        n_groups,
        group_id=names,
        members=[members] * n_groups,
        group_type=["classic"] * n_groups,
    )
    _table(
        root,
        "plan_state",
        n_groups,
        group_id=names,
        decision=["dry_run"] * n_groups,
        drain_s_before=[9.5] * n_groups,
    )
    for name in ("acks", "orders", "member_rates", "recommendations", "lag_history", "group_history"):
        _table(root, name, 0)
    _table(root, "planner_state", 1, term=[1])


def _table(root: str, name: str, n_rows: int, **columns: Any) -> None:
    """What is not named is the same in every row, or null."""
    same: Mapping[str, Any] = {"cluster": "prod", "updated_at": _NOW, "log_observed_at": _NOW, "batch_id": 1}
    false = ("provisional", "assigned", "confirmed", "lag_seconds_is_lower_bound")
    schema = arrow_schema(next(table.schema for table in TABLES if table.name == name))
    arrays = []
    for field in schema:
        value = False if field.name in false else same.get(field.name)
        given = columns.get(field.name)
        arrays.append(pa.array([value] * n_rows if given is None else given, field.type))
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    write_deltalake(f"{root}/{name}", pa.table(arrays, schema=nullable))
