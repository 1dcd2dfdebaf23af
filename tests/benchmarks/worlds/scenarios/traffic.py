"""Arrivals that nobody keeps up with, that come in bursts or vary by chance, and machines that vary with them."""

from dataclasses import replace

import numpy as np

from tests.benchmarks.worlds.scenario import Scenario
from tests.benchmarks.worlds.scenarios.parts import CAPACITY, TEN_MINUTES, plain, slowed, unequal

_MINUTE = TEN_MINUTES // 10


def hopeless_beside_curable(rng: np.random.Generator) -> Scenario:
    """A partition receives 1.1 to 3 times what any member reads; two others have too much that could be shared."""
    group = plain(rng, use=rng.uniform(0.3, 0.4), members=(5, 12))
    owners, rate = group.range_owners(0), group.mean_rate[0]
    hopeless, *busy = rng.choice(group.n_members, 3, replace=False).tolist()
    factor = np.ones(group.n_partitions)
    partition = rng.choice(np.flatnonzero(owners == hopeless))
    factor[partition] = rng.uniform(1.1, 3.0) * CAPACITY / rate[partition]
    for slot in busy:
        mine = owners == slot
        too_much = rng.uniform(1.15, 1.5) * CAPACITY / rate[mine].sum()
        # No partition of theirs is too much for a member by itself.
        factor[mine] = np.minimum(too_much, 0.7 * CAPACITY / rate[mine])
    return replace(group, rate=group.rate * factor, mean_rate=group.mean_rate * factor)


def bursts(rng: np.random.Generator) -> Scenario:
    """About every 25 minutes a partition, or one of three topics, receives 3 to 10 times as much for 2 to 10 minutes."""
    group = plain(rng, use=rng.uniform(0.35, 0.45), topics=3)
    factor = np.ones_like(group.rate)
    begun = TEN_MINUTES
    while begun < group.frames:
        until = begun + int(rng.integers(2 * _MINUTE, 10 * _MINUTE + 1))
        is_topic = rng.uniform() < 0.4
        hit = group.topic_of == rng.integers(3) if is_topic else [int(rng.integers(group.n_partitions))]
        factor[begun:until, hit] = rng.uniform(3, 10)
        begun = until + int(rng.integers(15 * _MINUTE, 25 * _MINUTE + 1))
    return replace(group, rate=group.rate * factor, mean_rate=group.mean_rate * factor)


def unequal_and_busy(rng: np.random.Generator) -> Scenario:
    """Machines of unlike speed, of which 85 to 90 % is needed, have equal shares at the start."""
    return unequal(rng, plain(rng, use=rng.uniform(0.85, 0.9)))


def noisy(rng: np.random.Generator) -> Scenario:
    """Nothing is wrong, but arrivals vary by 30 to 50 % from frame to frame and capacities by 10 to 20 %."""
    group = plain(rng, use=rng.uniform(0.5, 0.65))
    sigma = rng.uniform(0.3, 0.5)
    rate = group.mean_rate * rng.lognormal(-(sigma**2) / 2, sigma, group.rate.shape)
    jitter = np.maximum(1 + rng.uniform(0.1, 0.2) * rng.standard_normal(group.capacity.shape), 0.2)
    return replace(group, rate=rate, jitter=jitter)


def idle_but_for_one(rng: np.random.Generator) -> Scenario:
    """Members have 10 to 100 times the speed they need, and a quarter to a half of all arrives in one partition.

    From the tenth minute on its owner drains 85 % of what arrives: whoever takes the partition drains all at once.
    """
    group = plain(rng, use=rng.uniform(0.01, 0.1))
    hot, rate = int(rng.integers(group.n_partitions)), group.mean_rate[0]
    share = rng.uniform(0.25, 0.45)
    factor = np.ones(group.n_partitions)
    factor[hot] = share / (1 - share) * (rate.sum() - rate[hot]) / rate[hot]
    group = replace(group, rate=group.rate * factor, mean_rate=group.mean_rate * factor)
    owner = int(group.range_owners(0)[hot])
    return slowed(rng, group, from_frame=TEN_MINUTES, to_frame=group.frames, slot=owner)
