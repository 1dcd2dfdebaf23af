"""Slow, unequal and restarted machines, hot spots, backlogs: what a group meets sooner or later."""

from dataclasses import replace

import numpy as np

from tests.benchmarks.worlds.scenario import Scenario
from tests.benchmarks.worlds.scenarios.parts import (
    CAPACITY,
    HOUR,
    TEN_MINUTES,
    costly,
    plain,
    slowed,
    unequal,
)


def slow_member(rng: np.random.Generator) -> Scenario:
    """From the tenth minute on a member has a half or a third of its speed; there was no backlog before."""
    group = plain(rng, use=rng.uniform(0.5, 0.65))
    return slowed(rng, group, from_frame=TEN_MINUTES, to_frame=group.frames)


def recovering_member(rng: np.random.Generator) -> Scenario:
    """The same for 40 to 90 minutes."""
    group = plain(rng, use=rng.uniform(0.5, 0.65))
    return slowed(rng, group, from_frame=TEN_MINUTES, to_frame=TEN_MINUTES + rng.integers(80, 180))


def unequal_members(rng: np.random.Generator) -> Scenario:
    """Machines of four speeds share evenly what arrives; records of the second topic cost up to three times as much."""
    group = plain(rng, use=rng.uniform(0.6, 0.7), topics=2)
    return unequal(rng, costly(rng, group))


def hopeless_partition(rng: np.random.Generator) -> Scenario:
    """One partition receives more than any member reads; another member has a backlog that can be helped."""
    group = plain(rng, use=rng.uniform(0.35, 0.45), members=(4, 10))
    owners = group.range_owners(0)
    hopeless, behind = rng.choice(group.n_members, 2, replace=False)
    partition = np.flatnonzero(owners == hopeless)[0]
    factor = np.ones(group.n_partitions)
    factor[partition] = rng.uniform(1.1, 1.4) * CAPACITY / group.mean_rate[0, partition]
    lag = np.where(owners == behind, group.mean_rate[0] * rng.uniform(3600, 7200), 0.0)
    return replace(group, rate=group.rate * factor, mean_rate=group.mean_rate * factor, lag=np.floor(lag))


def pinned_fifth(rng: np.random.Generator) -> Scenario:
    """Unequal machines, and a fifth of the partitions are pinned."""
    group = unequal(rng, plain(rng, use=rng.uniform(0.55, 0.65)))
    pinned = np.zeros(group.n_partitions, np.bool_)
    pinned[rng.choice(group.n_partitions, group.n_partitions // 5, replace=False)] = True
    return replace(group, pinned=pinned)


def low_rate(rng: np.random.Generator) -> Scenario:
    """5 records/s in all, members that do a few per second, and 50,000 records behind on partitions of one member."""
    group = plain(rng, use=0.5, hours=5)
    factor = 5.0 / group.mean_rate[0].sum()
    lag = np.zeros(group.n_partitions)
    mine = np.flatnonzero(group.range_owners(0) == rng.integers(group.n_members))
    behind = rng.choice(mine, min(len(mine), int(rng.integers(2, 5))), replace=False)
    lag[behind] = np.floor(50_000 * rng.dirichlet(np.full(len(behind), 5.0)))
    return replace(
        group,
        rate=group.rate * factor,
        mean_rate=group.mean_rate * factor,
        lag=lag,
        capacity=np.full_like(group.capacity, rng.uniform(3.0, 6.0)),
    )


def drifting_hot_spot(rng: np.random.Generator) -> Scenario:
    """A run of partitions receives several times as much, and the run wanders once through the topic in five hours."""
    group = plain(rng, use=rng.uniform(0.4, 0.5), hours=5)
    partitions, width = group.n_partitions, group.n_partitions / group.n_members * rng.uniform(0.6, 1.0)
    centre = (np.arange(group.frames) / group.frames + rng.uniform()) * partitions
    away = np.abs(np.arange(partitions) - centre[:, None]) % partitions
    away = np.minimum(away, partitions - away)
    factor = 1 + rng.uniform(1.5, 2.5) * np.exp(-((away / width) ** 2))
    return replace(group, rate=group.rate * factor, mean_rate=group.mean_rate * factor)


def day(rng: np.random.Generator) -> Scenario:
    """A day: two topics whose peaks are hours apart, with records of unlike cost, on machines of two speeds."""
    group = plain(rng, use=rng.uniform(0.45, 0.5), topics=2, hours=24, members=(3, 6))
    peaks = rng.uniform(0, 1) + np.array([0.0, rng.uniform(0.1, 0.3)])
    time = np.arange(group.frames)[:, None] / group.frames
    wave = 1 + rng.uniform(0.5, 0.7) * np.cos(2 * np.pi * (time - peaks[group.topic_of]))
    capacity = group.capacity * rng.permutation(np.linspace(0.6, 1.4, group.n_members))
    group = replace(group, rate=group.rate * wave, mean_rate=group.mean_rate * wave, capacity=capacity)
    return costly(rng, group)


def rolling_restart(rng: np.random.Generator) -> Scenario:
    """Unequal machines; after half an hour, and again an hour later, each member is restarted in turn."""
    group = unequal(rng, plain(rng, use=rng.uniform(0.5, 0.6)))
    joined = group.joined.copy()
    for begun in (HOUR // 2, HOUR * 3 // 2):
        for place, slot in enumerate(rng.permutation(group.n_members)):
            down = begun + place * 6
            joined[down : down + int(rng.integers(1, 4)), slot] = False
    return replace(group, joined=joined, capacity=group.capacity * joined)


def some_do_not_follow(rng: np.random.Generator) -> Scenario:
    """A third of the members do not follow; one that does becomes slow."""
    group = plain(rng, use=rng.uniform(0.45, 0.6), members=(4, 12))
    follows = np.ones(group.n_members, np.bool_)
    follows[rng.choice(group.n_members, group.n_members // 3, replace=False)] = False
    slow = int(rng.choice(np.flatnonzero(follows)))
    group = slowed(rng, group, from_frame=TEN_MINUTES, to_frame=group.frames, slot=slow)
    return replace(group, follows=follows)


def busy(rng: np.random.Generator) -> Scenario:
    """80 to 95 % of the group's capacity arrives, unevenly: some members are above theirs."""
    return plain(rng, use=rng.uniform(0.8, 0.95), spread=0.2)


def quiet(rng: np.random.Generator) -> Scenario:
    """Nothing is wrong: no plan is due."""
    return plain(rng, use=rng.uniform(0.4, 0.7))


def unlike_topics(rng: np.random.Generator) -> Scenario:
    """Everybody reads two topics, records of the second cost five times as much, and a member becomes slow."""
    group = costly(rng, plain(rng, use=rng.uniform(0.5, 0.65), topics=2), times=(5.0, 5.0))
    return slowed(rng, group, from_frame=TEN_MINUTES, to_frame=group.frames)
