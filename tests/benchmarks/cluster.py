"""A batch on a standalone Spark cluster of this machine, beside the same batch with executors in the driver.

The driver is submitted as an operator does it, with the same two cores. In every measured batch each row has a new
commit, so that what is large enough goes through tasks; groups have no members, so plans are looked for and not made.
"""

import json
import re
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.broker import create_offsets_topic, create_topics, produce, small_broker
from tests.support.commits import commit_everywhere
from tests.support.inject import commit_record, inject
from tests.support.spark_cluster import SparkCluster
from tests.support.submitted_driver import Drivers, SubmittedDriver
from tests.support.waiting import wait_until

Say = Callable[[str], None]

_TOPIC, _PARTITIONS, _GROUPS = "wide", 1000, 10
_INTERVAL_S = 5
_SETTINGS = f"[trigger]\ninterval_s = {_INTERVAL_S}\n[plan]\ninterval_s = 1\n"
_BATCH = re.compile(r"batch_id=(\d+) seconds=(\S+) .*counts=(\{.*?\}) steps=(\{.*?\})")
_WARM_UP, _BATCHES = 1, 3
_EXECUTORS = {"local[2]": 0, "1 executor": 1, "2 executors": 2}
_STEPS = ("decode_records", "store_topic_offsets", "store_lag", "store_history", "make_plans")
_HEADER = ["rows", "executors", "batch p50 s", *_STEPS]
_WITHIN_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """What the log says of one."""

    number: int
    seconds: float
    commits: int
    steps: dict[str, float]


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Seconds of a batch by executors."""
    # More commits than these take longer to be made than a trigger lasts, and come in several batches.
    rows = list(_of_size(say, groups=_GROUPS, batches=2 if quick else _WARM_UP + _BATCHES))
    return {"tables": [{"header": _HEADER, "rows": rows}]}


def _of_size(say: Say, *, groups: int, batches: int) -> Iterator[list[Any]]:
    with small_broker() as broker, tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder:
        bootstrap = broker.bootstrap_servers
        create_offsets_topic(bootstrap)
        create_topics(bootstrap, {_TOPIC: _PARTITIONS})
        produce(bootstrap, _TOPIC, dict.fromkeys(range(_PARTITIONS), 100))
        # A group that no coordinator knows would be dropped; the rounds that follow it needs not know of.
        commit_everywhere(bootstrap, _TOPIC, _PARTITIONS, groups=groups, offset_of=lambda _: 1)
        for name, executors in _EXECUTORS.items():
            with _driver(Path(folder, f"executors-{executors}"), bootstrap, executors) as driver:
                seen = _watched(driver, bootstrap, groups, batches)
            row = [groups * _PARTITIONS, name, *_figures(seen)]
            say(", ".join(f"{what}: {value}" for what, value in zip(_HEADER, row, strict=True)))
            yield row


@contextmanager
def _driver(folder: Path, bootstrap: str, executors: int) -> Iterator[SubmittedDriver]:
    folder.mkdir()
    with SparkCluster(folder / "spark", workers=executors) as spark:
        master = spark.url if executors else "local[2]"
        drivers = Drivers(folder, _SETTINGS, master, of_drivers=bootstrap, of_executors=bootstrap)
        try:
            yield drivers.submit("driver")
        finally:
            drivers.kill()


def _watched(driver: SubmittedDriver, bootstrap: str, groups: int, batches: int) -> list[_Batch]:
    driver.wait_for_batches()
    for number in range(batches):
        # A batch has just ended, so the next one takes them all.
        inject(
            bootstrap,
            (
                commit_record(f"group-{group:03}", _TOPIC, partition, 2 + number)
                for group in range(groups)
                for partition in range(_PARTITIONS)
            ),
        )
        wait_until(
            lambda wanted=number + 2: len(_full(driver, groups)) >= wanted,
            what="a batch with all commits",
            within_s=_WITHIN_S,
        )
    return _full(driver, groups)


def _full(driver: SubmittedDriver, groups: int) -> list[_Batch]:
    """Batches that had a commit of each row; the first one also has those that were made for another driver."""
    found = [
        _Batch(
            number=int(n), seconds=float(s), commits=json.loads(c).get("commit", 0), steps=json.loads(steps)
        )
        for n, s, c, steps in _BATCH.findall(driver.log)
    ]
    return [one for one in found if one.commits >= groups * _PARTITIONS]


def _figures(seen: list[_Batch]) -> list[float]:
    counted = seen[1 + _WARM_UP :] or seen[1:]
    return [
        round(statistics.median(one.seconds for one in counted), 2),
        *(round(statistics.median(one.steps.get(step, 0.0) for one in counted), 2) for step in _STEPS),
    ]
