"""What worlds are made of: a plain group, and what can be wrong with its machines and records."""

from dataclasses import replace

import numpy as np

from assignor.model.arrays import Bools, Floats
from tests.benchmarks.worlds.commits import every_5_s
from tests.benchmarks.worlds.scenario import FRAME_S, Scenario, range_owners

CAPACITY = 1000.0
"""Units of work per second."""
HOUR = 3600 // FRAME_S
"""Frames."""
TEN_MINUTES = 600 // FRAME_S


def plain(
    rng: np.random.Generator,
    *,
    use: float,
    spread: float = 0.08,
    hours: int = 3,
    topics: int = 1,
    members: tuple[int, int] = (3, 12),
) -> Scenario:
    """Equal members that share arrivals evenly, give or take `spread`; partitions of unlike rates."""
    # Small groups are more common than large ones.
    n = members[0] + int((members[1] - members[0] + 1) * rng.uniform() ** 2)
    partitions, frames = int(rng.integers(max(12, 3 * n), max(20, 5 * n) + 1)), hours * HOUR
    topic_of = np.sort(np.arange(partitions) % topics).astype(np.int32)
    owners = range_owners(topic_of, np.arange(n))
    rate = rng.lognormal(0.0, 0.5, partitions)
    share = 1 + spread * rng.uniform(-1, 1, n)
    rate *= (share / share.mean() * use * CAPACITY / np.bincount(owners, weights=rate, minlength=n))[owners]
    return Scenario(
        topic_of=topic_of,
        cost=np.ones(partitions),
        lag=np.zeros(partitions),
        rate=rate * rng.lognormal(-0.005, 0.1, (frames, partitions)),
        mean_rate=np.tile(rate, (frames, 1)),
        capacity=np.full((frames, n), CAPACITY),
        jitter=np.ones((frames, n)),
        hung=np.zeros((frames, n), np.bool_),
        commits=every_5_s(n),
        joined=np.ones((frames, n), np.bool_),
        follows=np.ones(n, np.bool_),
        pinned=np.zeros(partitions, np.bool_),
        hears_s=rng.uniform(8.0, 16.0, n),
        hand_over_s=rng.uniform(3.0, 6.0, partitions),
    )


def slowed(
    rng: np.random.Generator, group: Scenario, *, from_frame: int, to_frame: int, slot: int | None = None
) -> Scenario:
    """A member, any if none is given, with a half or a third of its speed or less, from one frame to another."""
    slot = int(rng.integers(group.n_members)) if slot is None else slot
    owned: Bools = group.range_owners(0) == slot
    # Slow enough that what it has is too much for it.
    work = float((group.mean_rate[0] * group.cost)[owned].sum())
    speed = min(float(rng.choice([1 / 2, 1 / 3])), 0.85 * work / CAPACITY)
    capacity = group.capacity.copy()
    capacity[from_frame:to_frame, slot] *= speed
    return replace(group, capacity=capacity)


def unequal(rng: np.random.Generator, group: Scenario) -> Scenario:
    """Speeds of 0.5 to 1.75 of the mean."""
    speeds: Floats = rng.permutation(np.linspace(0.5, 1.75, group.n_members))
    return replace(group, capacity=group.capacity * speeds / speeds.mean())


def costly(rng: np.random.Generator, group: Scenario, *, times: tuple[float, float] = (1.5, 3.0)) -> Scenario:
    """Records of the second topic cost so many times as much; all together the work stays the same."""
    cost = np.where(group.topic_of == 1, rng.uniform(*times), 1.0)
    work = group.mean_rate.sum() / (group.mean_rate * cost).sum()
    return replace(group, cost=cost * work)
