"""Requests that batches make to the object store of their tables, by step and kind."""

import re
import statistics
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from pipeline.run.batch import steps
from pipeline.run.health.monitor import Monitor
from pipeline.run.query import RunBatch
from pipeline.tables.owner.beat_file import FILE_NAME
from tests.support.job.steps import AmongGhosts
from tests.support.spark.store_proxy import StoreProxy

_SOURCE = "source"
"""Between two batches only Spark's process that chooses the next one asks the store."""
_OBJECTS = (
    (re.compile(r"_last_checkpoint"), "hint"),
    (re.compile(r"/\d{20}\.json"), "commit"),
    (re.compile(r"\.checkpoint\.parquet"), "checkpoint"),
    (re.compile(r"\.parquet"), "file"),
)


class RequestCount:
    """Requests through a proxy, batch by batch."""

    def __init__(self, proxy: StoreProxy) -> None:
        """Nothing is counted yet."""
        self._proxy = proxy
        self.batches: list[Counter[tuple[str, str]]] = []

    def taken(self, step: str) -> None:
        """Count what was requested since the last call for this step of the newest batch."""
        if step == _SOURCE:
            self.batches.append(Counter())
        kinds = map(kind_of, self._proxy.take_requests())
        self.batches[-1].update((step, kind) for kind in kinds if kind is not None)

    @property
    def run_batch(self) -> RunBatch:
        """Takes a batch through its steps and counts."""
        return partial(steps.run, steps=partial(_CountedSteps, self))

    def figures(self, last: int) -> dict[str, Any]:
        """Medians over the last batches: all requests, by kind and by step."""
        batches = self.batches[-last:]
        return {
            "requests_p50": statistics.median(one.total() for one in batches),
            "requests_by_kind": _medians(batches, lambda pair: pair[1]),
            "requests_by_step": _medians(batches, lambda pair: pair[0]),
            "requests_by_step_and_kind": _medians(batches, " ".join),
        }


class _CountedSteps(AmongGhosts):
    def __init__(self, count: RequestCount, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._count = count

    def value(self, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if step.__name__ == "begin":
            self._count.taken(_SOURCE)
        return super().value(step, *args, **kwargs)

    def behind(self, name: str) -> None:
        self._count.taken(name)


def kind_of(request: str) -> str | None:
    """Verb and object of a request; None for the heartbeat, which does not belong to a batch."""
    verb, path = request.split(" ", 1)
    if FILE_NAME in path:
        return None
    if verb == "GET" and "list-type=" in path:
        return "LIST"
    return f"{verb} {next((name for pattern, name in _OBJECTS if pattern.search(path)), 'other')}"


def _medians(
    batches: list[Counter[tuple[str, str]]], name: Callable[[tuple[str, str]], str]
) -> dict[str, float]:
    sums = [Counter[str]() for _ in batches]
    for summed, batch in zip(sums, batches, strict=True):
        for pair, number in batch.items():
            summed[name(pair)] += number
    names = sorted({one for summed in sums for one in summed})
    return {one: statistics.median(summed[one] for summed in sums) for one in names}
