"""One group, timed on both sides: Kafka's assignor inside of Java, ours from arrays and from Python objects."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from assignor.arrays import Int32s
from assignor.assignment import Assignment
from assignor.by_member import by_member
from assignor.group import Group
from assignor.handover import next_step
from assignor.members import build_group
from assignor.registry import strategy
from assignor.topics import Topics
from tests.benchmarks.assignor_groups import Shape
from tests.benchmarks.timing import repeat
from tests.oracle.kafka_assignors import KafkaAssignors

_LARGE, _MIDDLE = 200_000, 20_000
_MOST_REBALANCES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """How often a group is assigned."""

    warm_up: int
    times: int

    @classmethod
    def of(cls, n_partitions: int, *, quick: bool) -> "Runs":
        """Fewer for a larger group, which also needs fewer until Java has compiled what it runs."""
        if quick:
            return cls(warm_up=1, times=3)
        if n_partitions > _LARGE:
            return cls(warm_up=4, times=5)
        return cls(warm_up=6, times=7) if n_partitions > _MIDDLE else cls(warm_up=15, times=15)


@final
class Kafka:
    """Kafka's side, in one warm Java process."""

    def __init__(self, oracle: KafkaAssignors) -> None:
        self._oracle = oracle

    def time(self, shape: Shape, assignor: str, runs: Runs) -> tuple[float, Int32s]:
        """Median milliseconds of one assignment, and the member of each partition, -1 for those withheld."""
        answer = self._oracle.ask(shape.question(assignor, warm_up=runs.warm_up, times=runs.times))
        owner = np.frombuffer(bytes.fromhex(answer["owner"]), ">i4").astype(np.int32)
        return statistics.median(answer["ms"]), owner

    def settled(self, shape: Shape, assignor: str) -> Int32s:
        """The member of each partition once no rebalance changes anything."""
        once = Runs(warm_up=0, times=1)
        owner = shape.owner
        for _ in range(_MOST_REBALANCES):
            _, after = self.time(shape.owned_by(owner), assignor, once)
            if (after >= 0).all():
                return after
            owner = after
        raise RuntimeError(f"{assignor} did not settle in {_MOST_REBALANCES} rebalances")


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
    """What members are told; Kafka's cooperative assignor withholds too what others still own."""
    target = strategy(name).assign(group, options)
    return next_step(group, target) if name == "cooperative-sticky" else target
