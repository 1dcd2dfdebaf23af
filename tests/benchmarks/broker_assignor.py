"""How long the brokers' assignor keeps the thread that serves heartbeats: groups of several sizes, with many plans held.

Groups are described by maps in memory. Kafka's own description also looks each topic up in its metadata.
"""

import subprocess
from collections.abc import Callable
from typing import Any

from tests.support.java.broker_jar import NEWEST, broker_jar

Say = Callable[[str], None]

_ROUNDS = 5000
_SIZES = (
    # Members, partitions in all, topics, plans held.
    (50, 1000, 1, 1000),
    (50, 1000, 10, 1000),
    (50, 50_000, 1, 10),
)
_CASES = {
    "planned": "a plan fits",
    "kept": "no plan, nobody new",
    "first": "no plan, nobody has anything",
    "newcomer": "no plan, one more member",
    "unequal": "the same, and one that reads one topic only",
}
_HEADER = [
    *("members", "partitions", "topics", "plans held", "assignment"),
    *("µs: p50", "p99", "slowest", "processor: p99", "heap MB after all"),
]


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Microseconds of an assignment, the first ones of the process included."""
    rows: list[list[Any]] = []
    for size in _SIZES:
        arguments = map(str, (*size, 200 if quick else _ROUNDS))
        command = broker_jar().command(NEWEST, "lagwise.broker.Speed", *arguments)
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        figures = {name: list(map(int, rest)) for name, *rest in map(str.split, done.stdout.splitlines())}
        (heap_mb,) = figures.pop("heap_mb")
        rows += [[*size, _CASES[case], *took, heap_mb] for case, took in figures.items()]
        say(str(rows[-len(figures) :]))
    return {"tables": [{"header": _HEADER, "rows": rows}]}
