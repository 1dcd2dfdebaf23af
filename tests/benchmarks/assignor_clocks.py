"""One group, timed on both sides: Kafka's assignor inside Java, ours from arrays and from Python objects."""

import statistics
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import numpy as np

from assignor.model.arrays import Int32s
from assignor.model.assignment import Assignment
from assignor.model.by_member import by_member
from assignor.model.group import Group
from assignor.model.members import build_group
from assignor.model.topics import Topics
from assignor.strategies.handover import next_step
from assignor.strategies.registry import strategy
from tests.benchmarks.assignor_groups import Shape
from tests.benchmarks.timing import repeat
from tests.oracle.kafka_assignors import KafkaAssignors

_KAFKA_MAY_TAKE_MS = 4_000
_LEAST_TIMES = 3
_MOST_REBALANCES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Numbers of assignments."""

    warm_up: int
    """Untimed runs first, for Java, which compiles hot code; ours is warm after three."""
    times: int


FULL = Runs(warm_up=100, times=9)
QUICK = Runs(warm_up=1, times=3)
_ONCE = Runs(warm_up=0, times=1)


_JAVA = ("-Xmx4g",)


@final
class Kafka:
    """Kafka's side, in one Java process that gets warmer with every group."""

    def __init__(self, oracle: KafkaAssignors) -> None:
        self._oracle = oracle

    @classmethod
    @contextmanager
    def started(cls) -> Iterator["Kafka"]:
        """A new process."""
        with KafkaAssignors(java_options=_JAVA) as oracle:
            yield cls(oracle)

    @classmethod
    def cold_ms(cls, shape: Shape, assignor: str) -> float:
        """Milliseconds of the first assignment in a new process, as for a leader that seldom rebalances."""
        with cls.started() as cold:
            milliseconds, _ = cold._ask(shape, assignor, _ONCE)
        return milliseconds

    def time(self, shape: Shape, assignor: str, runs: Runs) -> tuple[float, Int32s]:
        """Median milliseconds of one assignment, and the member of each partition, -1 for those withheld.

        Fewer runs, but no fewer than three, where they would take more than seconds.
        """
        first_ms, owner = self._ask(shape, assignor, _ONCE)
        affordable = max(_LEAST_TIMES, int(_KAFKA_MAY_TAKE_MS / first_ms))
        fewer = Runs(warm_up=min(runs.warm_up, affordable), times=min(runs.times, affordable))
        milliseconds, _ = self._ask(shape, assignor, fewer)
        return milliseconds, owner

    def settled(self, shape: Shape, assignor: str) -> Int32s:
        """The member of each partition once no rebalance changes anything."""
        owner = shape.owner
        for _ in range(_MOST_REBALANCES):
            _, after = self._ask(shape.owned_by(owner), assignor, _ONCE)
            if (after >= 0).all():
                return after
            owner = after
        raise RuntimeError(f"{assignor} did not settle in {_MOST_REBALANCES} rebalances")

    def _ask(self, shape: Shape, assignor: str, runs: Runs) -> tuple[float, Int32s]:
        answer = self._oracle.ask(shape.question(assignor, warm_up=runs.warm_up, times=runs.times))
        owner = np.frombuffer(bytes.fromhex(answer["owner"]), ">i4").astype(np.int32)
        return statistics.median(answer["ms"]), owner


def from_arrays(
    group: Group, name: str, options: Mapping[str, object], runs: Runs
) -> tuple[float, Assignment]:
    """Median milliseconds from the array form to the array of members, and what was handed out."""

    def work() -> Assignment:
        return _handed_out(group, name, options)

    timing = repeat(work, times=runs.times, warm_up=min(runs.warm_up, 3))
    return timing.median_s * 1e3, work()


def from_objects(shape: Shape, name: str, options: Mapping[str, object], runs: Runs) -> float:
    """Median milliseconds from members with mappings to members with mappings, as a plug-in has them."""
    members = shape.members()

    def work() -> None:
        group = build_group(topics=Topics.of(shape.topics), members=members)
        by_member(group, _handed_out(group, name, options).member)

    return repeat(work, times=runs.times, warm_up=min(runs.warm_up, 3)).median_s * 1e3


def _handed_out(group: Group, name: str, options: Mapping[str, object]) -> Assignment:
    """The members' assignment; Kafka's cooperative assignor also withholds what others still own."""
    target = strategy(name).assign(group, options)
    return next_step(group, target) if name == "cooperative-sticky" else target
