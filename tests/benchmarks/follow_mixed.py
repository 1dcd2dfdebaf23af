"""One group of Java, kafka-python and aiokafka under kills, rolling bounces and plans, ten times.

Each run has a broker and an order of kills of its own. A run that loses a record, or in which a partition has two
owners, ends the measurement with an error. One run alone, by its seed: python -m tests.benchmarks.follow_mixed 7
"""

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.followers.follow_mixed import Outcome, run
from tests.support.java.java_jar import java_jar

_RUNS = 10
_HEADER = ["figure", "median", "least", "most", "all runs"]
_Figure = Callable[[Outcome], int]
_FIGURES: dict[str, _Figure] = {
    "records": lambda one: one.records,
    "lost": lambda one: one.lost,
    "partitions with two owners": lambda one: one.second_owners,
    "processed twice by a kill": lambda one: one.repeats.by_kill,
    "processed twice by a rebalance": lambda one: one.repeats.by_rebalance,
    "killed": lambda one: one.kills,
    "replaced in bounces": lambda one: one.replaced,
    "plans": lambda one: one.plans,
    "plans applied to the letter": lambda one: one.applied,
    "plans acknowledged": lambda one: one.acknowledged,
}


def measure(say: Callable[[str], None], *, quick: bool) -> dict[str, Any]:
    """What was lost, processed twice and applied in each run.

    Raises:
        AssertionError: A record was lost, or a partition had two owners.
        MissingDependencyError: No JDK.
    """
    outcomes = []
    for seed in range(1, 1 + (1 if quick else _RUNS)):
        outcomes.append(once(seed))
        say(str(outcomes[-1]))
    return {"tables": [{"header": _HEADER, "rows": _rows(outcomes)}]}


def once(seed: int) -> Outcome:
    """The run of that seed; raises as `measure` does."""
    folder = Path(mkdtemp(prefix=f"follow-mixed-{seed}-"))
    with small_broker() as broker:
        create_offsets_topic(broker.bootstrap_servers)
        outcome = run(broker.bootstrap_servers, f"mixed-{seed}", folder, jar=java_jar(), seed=seed)
    assert (outcome.lost, outcome.second_owners) == (0, 0), f"{outcome}; the members' lines are in {folder}"
    rmtree(folder)
    return outcome


def _rows(outcomes: Sequence[Outcome]) -> list[list[Any]]:
    rows = []
    for name, figure in _FIGURES.items():
        values = [figure(one) for one in outcomes]
        rows.append([name, statistics.median(values), min(values), max(values), sum(values)])
    return rows


if __name__ == "__main__":
    print(json.dumps(once(int(sys.argv[1])), default=str))  # noqa: T201 - its answer
