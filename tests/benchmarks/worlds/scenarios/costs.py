"""Records that take longer than others, whoever reads them."""

from dataclasses import replace

import numpy as np

from tests.benchmarks.worlds.scenario import Scenario
from tests.benchmarks.worlds.scenarios.parts import CAPACITY, TEN_MINUTES, plain, slowed

_MOST_WORK = 0.8
"""Share of a member's capacity that a partition takes at most: somebody can read it."""


def slow_partition(rng: np.random.Generator) -> Scenario:
    """From the start records of one partition cost 3 to 8 times as much, which is too much for its owner."""
    return _with_slow_partition(rng, members=(3, 12))[0]


def slow_partition_and_member(rng: np.random.Generator) -> Scenario:
    """The same, and from the tenth minute on another member is slow."""
    group, owner = _with_slow_partition(rng, members=(5, 12))
    slot = int(rng.choice([other for other in range(group.n_members) if other != owner]))
    return slowed(rng, group, from_frame=TEN_MINUTES, to_frame=group.frames, slot=slot)


def slow_topic(rng: np.random.Generator) -> Scenario:
    """Everybody reads three topics; records of the last cost 3 to 6 times as much, and half of the members get them all."""
    group = plain(rng, use=rng.uniform(0.62, 0.72), topics=3, members=(4, 12))
    is_slow = group.topic_of == 2
    cost = np.where(is_slow, rng.uniform(3, 6), 1.0)
    # Its keys fall into its first partitions, which the range assignor gives to the first members.
    share = np.where(is_slow & (group.range_owners(0) >= group.n_members // 2), 0.05, 1.0)
    cost *= group.mean_rate[0].sum() / (group.mean_rate[0] * share * cost).sum()
    share = np.minimum(share, _MOST_WORK * CAPACITY / (group.mean_rate[0] * cost))
    return replace(group, rate=group.rate * share, mean_rate=group.mean_rate * share, cost=cost)


def _with_slow_partition(rng: np.random.Generator, *, members: tuple[int, int]) -> tuple[Scenario, int]:
    """The group, and the owner of its slow partition."""
    group = plain(rng, use=rng.uniform(0.5, 0.6), members=members)
    owners, rate, times = group.range_owners(0), group.mean_rate[0], float(rng.uniform(3, 8))
    total = np.bincount(owners, weights=rate, minlength=group.n_members)[owners] + (times - 1) * rate
    can_be_read = times * rate <= _MOST_WORK * CAPACITY
    hurts = np.flatnonzero(can_be_read & (total > 1.05 * CAPACITY))
    # Where none is too much for its owner, the one that is the most.
    slow = int(rng.choice(hurts)) if len(hurts) else int(np.where(can_be_read, rate, 0.0).argmax())
    cost = group.cost.copy()
    cost[slow] = times
    return replace(group, cost=cost), int(owners[slow])
