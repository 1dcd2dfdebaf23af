"""Asking for the log offsets of many partitions: three brokers, a driver and two worker processes.

Librdkafka's mock brokers run in this process, the real ones beside it; both take part of the machine, as a user's
would not. A batch lists, and then asks for both shares at the same time, with the Arrow batches that Spark is given;
the first one has its clients to make.
"""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

from pipeline.kafka.sources.log_offsets.ask import ask, shares
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, Share
from tests.support.brokers.cluster import create_replicated_topics, small_cluster
from tests.support.brokers.mock_cluster import MockCluster

Say = Callable[[str], None]

_BROKERS = 3
_WORKERS = 2
_PARTITIONS_OF_A_TOPIC = 200
_ON_REAL_BROKERS = 6_000
_HEADER = [
    "brokers",
    "partitions",
    "first batch s",
    "later batches s, worst",
    "listing s",
    "without an answer",
]


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Seconds by number of partitions; the goal is 100,000 within 10 s on two cores."""
    sizes, batches = ((5_000, 20_000), 3) if quick else ((25_000, 50_000, 100_000), 6)
    rows = []
    for partitions in sizes:
        rows.append(_on_mocks(partitions, batches))
        say(_line(rows[-1]))
    if not quick:
        rows.append(_on_real(_ON_REAL_BROKERS, batches))
        say(_line(rows[-1]))
    return {"tables": [{"header": _HEADER, "rows": rows}]}


def _line(row: list[Any]) -> str:
    return ", ".join(f"{what}: {value}" for what, value in zip(_HEADER, row, strict=True))


def _names(partitions: int) -> list[str]:
    return [f"company.domain.team.orders-events-{n:05d}" for n in range(partitions // _PARTITIONS_OF_A_TOPIC)]


def _on_mocks(partitions: int, batches: int) -> list[Any]:
    with MockCluster(_BROKERS) as cluster:
        for name in _names(partitions):
            cluster.create(name, _PARTITIONS_OF_A_TOPIC)
        return ["mock", partitions, *_figures(cluster.bootstrap, batches)]


def _on_real(partitions: int, batches: int) -> list[Any]:
    with small_cluster(_BROKERS) as cluster:
        replicas = [[1 + number % _BROKERS] for number in range(_PARTITIONS_OF_A_TOPIC)]
        create_replicated_topics(cluster.bootstrap_servers, dict.fromkeys(_names(partitions), replicas))
        return ["real", partitions, *_figures(cluster.bootstrap_servers, batches)]


def _figures(bootstrap: str, batches: int) -> list[Any]:
    settings = LogOffsetsSettings(
        properties={"bootstrap.servers": bootstrap, "log_level": "0"},
        topics_include=("company.*",),
        topics_exclude=(),
        isolation="read_uncommitted",
        request_timeout_s=10,
        splits=_WORKERS,
    )
    first, *later = _batches(settings, batches)
    unanswered = sum(count for _, _, count in (first, *later))
    worst = max(later)
    return [round(first[0], 2), round(worst[0], 2), round(worst[1], 2), unanswered]


def _batches(settings: LogOffsetsSettings, count: int) -> list[tuple[float, float, int]]:
    """Seconds of each batch, of its listing, and how many partitions had no answer."""
    spawn = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(max_workers=1, mp_context=spawn) as driver,
        ProcessPoolExecutor(max_workers=_WORKERS, mp_context=spawn) as workers,
    ):
        found = []
        for _ in range(count):
            begun = time.monotonic()
            listed = driver.submit(partial(shares, settings, tasks=_WORKERS)).result()
            listed_s = time.monotonic() - begun
            unanswered = sum(workers.map(_ask, [settings] * len(listed), listed))
            found.append((time.monotonic() - begun, listed_s, unanswered))
    return found


def _ask(settings: LogOffsetsSettings, share: Share) -> int:
    """How many partitions of the share had no answer."""
    return ask(settings, share)["error"].is_valid().to_pylist().count(True)
