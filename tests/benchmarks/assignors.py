"""Our strategies beside Kafka's assignors, in one run on the same groups.

python -m tests.benchmarks --only assignors [--quick]
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from assignor.evaluation.validity import check
from assignor.model.arrays import Int32s
from assignor.model.group import Group
from assignor.strategies.registry import strategy
from tests.benchmarks.assignor_cases import COOPERATIVE, GRID, TABLE, Case
from tests.benchmarks.assignor_clocks import FULL, QUICK, Kafka, from_arrays, from_objects
from tests.benchmarks.assignor_groups import Shape, heavy_tailed_lag, heavy_tailed_rate

Say = Callable[[str], None]
Figures = dict[str, Any]

_SIZE = {"partitions": "partitions", "members": "members"}
_COLD = {
    "kafka_cold_ms": "Kafka, first time, ms",
    "cold_times_as_fast": "times as fast",
}
_COLUMNS = {
    "kafka_ms": "Kafka, warm, ms",
    "ours_ms": "ours, ms",
    "times_as_fast": "times as fast",
    "objects_ms": "ours with Python objects, ms",
    "objects_times_as_fast": "times as fast",
    "kafka_counts": "counts, Kafka",
    "our_counts": "counts, ours",
    "kafka_moves": "moves, Kafka",
    "our_moves": "moves, ours",
}
_GROWTH = {"kafka_ms": "growth, Kafka", "ours_ms": "growth, ours"}


def measure(say: Say, *, quick: bool) -> Figures:
    """Every case in every size, the exponents of growth, and two tables: the goals, and Kafka's grid."""
    figures: Figures = {}
    with Kafka.started() as kafka:
        for part, cases in (("goals", TABLE), ("grid", GRID)):
            figures[part] = {case.name: _case(case, kafka, say, quick=quick) for case in cases}
    figures["tables"] = [
        {
            "header": [
                "assignors",
                "goal",
                "met",
                *_SIZE.values(),
                *_COLD.values(),
                *_COLUMNS.values(),
                *_GROWTH.values(),
            ],
            "rows": [
                [
                    case.name,
                    case.goal.words,
                    "" if quick else _met(case, sizes[0]),
                    *_cells(sizes[0], _SIZE | _COLD | _COLUMNS),
                    *_growth(sizes),
                ]
                for case, sizes in zip(TABLE, figures["goals"].values(), strict=True)
            ],
        },
        {
            "header": ["Kafka's grid", *_SIZE.values(), *_COLUMNS.values(), *_GROWTH.values()],
            "rows": [
                [name, *_cells(size, _SIZE | _COLUMNS), *_growth(sizes)]
                for name, sizes in figures["grid"].items()
                for size in sizes
            ],
        },
    ]
    return figures


def _case(case: Case, kafka: Kafka, say: Say, *, quick: bool) -> list[Figures]:
    """The figures of each size, the largest first; a quick run takes the smallest only."""
    divisors = case.divisors[-1:] if quick else case.divisors
    sizes = [_size(case, case.shape(kafka, divisor), kafka, quick=quick) for divisor in divisors]
    say(f"{case.name}: {sizes[0]}")
    return sizes


def _size(case: Case, shape: Shape, kafka: Kafka, *, quick: bool) -> Figures:
    runs = QUICK if quick else FULL
    options = case.options(shape)
    group = _group(case, shape)
    milliseconds, handed_out = from_arrays(group, case.ours, options, runs)
    target = strategy(case.ours).assign(group, options)
    check(group, target, even="optimal" if case.ours == COOPERATIVE else "no")
    figures: Figures = {
        "partitions": shape.n_partitions,
        "members": shape.n_members,
        "ours_ms": round(milliseconds, 2),
        "our_counts": _counts(target.member, shape),
        "our_moves": _moves(handed_out.member, shape),
    }
    if case.kafkas is None:
        return figures
    objects_ms = from_objects(shape, case.ours, options, runs)
    kafka_ms, owner = kafka.time(shape, case.kafkas, runs)
    if case.goal.words:
        cold_ms = kafka.cold_ms(shape, case.kafkas)
        figures |= {
            "kafka_cold_ms": round(cold_ms, 2),
            "cold_times_as_fast": round(cold_ms / milliseconds, 1),
        }
    return figures | {
        "objects_ms": round(objects_ms, 2),
        "kafka_ms": round(kafka_ms, 2),
        "times_as_fast": round(kafka_ms / milliseconds, 1),
        "objects_times_as_fast": round(kafka_ms / objects_ms, 1),
        "kafka_counts": _counts(kafka.settled(shape.owned_by(owner), case.kafkas), shape),
        "kafka_moves": _moves(owner, shape),
    }


def _group(case: Case, shape: Shape) -> Group:
    if not case.reads_lag:
        return shape.group()
    n = shape.n_partitions
    lag = np.zeros(n, np.int64) if case.has_no_lag else heavy_tailed_lag(n)
    return shape.group(lag=lag, rate=heavy_tailed_rate(n, shape.n_members))


def _counts(member: Int32s, shape: Shape) -> str:
    """Partitions of the member with the fewest and of the one with the most."""
    counts = np.bincount(member[member >= 0], minlength=shape.n_members)
    return f"{counts.min()}-{counts.max()}"


def _moves(member: Int32s, shape: Shape) -> int:
    """Partitions that are taken from their owner in this rebalance."""
    return int(((shape.owner >= 0) & (member != shape.owner)).sum())


def _met(case: Case, size: Figures) -> str:
    goal = case.goal
    reached = [
        goal.arrays is None or size["times_as_fast"] >= goal.arrays,
        goal.objects is None or size["objects_times_as_fast"] >= goal.objects,
        goal.at_most_ms is None or size["ours_ms"] <= goal.at_most_ms,
    ]
    return "yes" if all(reached) else "no"


def _cells(size: Figures, columns: Mapping[str, str]) -> list[Any]:
    return [size.get(name, "") for name in columns]


def _growth(sizes: list[Figures]) -> list[Any]:
    """Exponents of time over partitions, by least squares; none for a single size."""
    return [
        _exponent([(size["partitions"], size[name]) for size in sizes if name in size]) for name in _GROWTH
    ]


def _exponent(points: list[tuple[int, float]]) -> float | str:
    if len(points) < 2:
        return ""
    partitions, milliseconds = np.log(np.array(points, np.float64)).T
    return round(float(np.polyfit(partitions, milliseconds, 1)[0]), 2)
