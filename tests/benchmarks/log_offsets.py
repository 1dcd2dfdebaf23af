"""Asking for the log offsets of many partitions: librdkafka's mock cluster of three, two worker processes.

The brokers run in this process and take part of the machine, as real ones would not. A trigger is the listing and
then both shares at the same time, with the Arrow batches that Spark is given; the first one has its clients to make.
"""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from pipeline.log_offsets import LogOffsetsReader, LogOffsetsSettings, Slice
from tests.support.mock_cluster import MockCluster

Say = Callable[[str], None]

_BROKERS = 3
_WORKERS = 2
_PARTITIONS_OF_A_TOPIC = 200
_HEADER = ["partitions", "first trigger s", "later triggers s, worst", "of it listing s", "without an answer"]


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Seconds by number of partitions; the goal is 100,000 within 10 s on two cores."""
    sizes, triggers = ((5_000, 20_000), 3) if quick else ((25_000, 50_000, 100_000), 6)
    rows = []
    for partitions in sizes:
        rows.append(_row(partitions, triggers))
        say(", ".join(f"{what}: {value}" for what, value in zip(_HEADER, rows[-1], strict=True)))
    return {"tables": [{"header": _HEADER, "rows": rows}]}


def _row(partitions: int, triggers: int) -> list[Any]:
    with MockCluster(_BROKERS) as cluster:
        for number in range(partitions // _PARTITIONS_OF_A_TOPIC):
            cluster.create(f"company.domain.team.orders-events-{number:05d}", _PARTITIONS_OF_A_TOPIC)
        settings = LogOffsetsSettings(
            properties={"bootstrap.servers": cluster.bootstrap, "log_level": "0"},
            topics_include=(".*",),
            topics_exclude=(),
            isolation="read_uncommitted",
            request_timeout_s=10,
            splits=_WORKERS,
        )
        first, *later = _triggers(settings, triggers)
    unanswered = sum(count for _, _, count in (first, *later))
    worst = max(later)
    return [partitions, round(first[0], 2), round(worst[0], 2), round(worst[1], 2), unanswered]


def _triggers(settings: LogOffsetsSettings, count: int) -> list[tuple[float, float, int]]:
    """Seconds of each trigger, of its listing, and how many partitions had no answer."""
    spawn = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(max_workers=1, mp_context=spawn) as planner,
        ProcessPoolExecutor(max_workers=_WORKERS, mp_context=spawn) as workers,
    ):
        found = []
        for _ in range(count):
            begun = time.monotonic()
            shares = planner.submit(_plan, settings).result()
            listed_s = time.monotonic() - begun
            unanswered = sum(workers.map(_read, [settings] * len(shares), shares))
            found.append((time.monotonic() - begun, listed_s, unanswered))
    return found


def _plan(settings: LogOffsetsSettings) -> list[Slice]:
    return LogOffsetsReader(settings).partitions({"tick": 0}, {"tick": 1})


def _read(settings: LogOffsetsSettings, share: Slice) -> int:
    """How many partitions of the share had no answer."""
    batches = LogOffsetsReader(settings).read(share)
    return sum(batch["error"].is_valid().to_pylist().count(True) for batch in batches)
