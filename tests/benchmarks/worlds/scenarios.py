"""The worlds: each a rule with a seed; none holds recorded data.

Unless a world says otherwise, a member does 1,000 units of work per second, arrivals are steady with noise of a tenth per
frame, everybody follows and hears of a plan 8 to 16 s after the evaluation, and a partition that moves is unread for
3 to 6 s.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from assignor.model.arrays import Bools, Floats
from tests.benchmarks.worlds.scenario import FRAME_S, Scenario, range_owners

Generator = Callable[[np.random.Generator], Scenario]

_CAPACITY = 1000.0
_HOUR = 3600 // FRAME_S
_TEN_MINUTES = 600 // FRAME_S


def slow_member(rng: np.random.Generator) -> Scenario:
    """From the tenth minute on a member has a half or a third of its speed; there was no backlog before."""
    plain = _plain(rng, "slow member", use=rng.uniform(0.5, 0.65))
    return _slowed(rng, plain, from_frame=_TEN_MINUTES, to_frame=plain.frames)


def recovering_member(rng: np.random.Generator) -> Scenario:
    """The same for 40 to 90 minutes."""
    plain = _plain(rng, "recovering member", use=rng.uniform(0.5, 0.65))
    return _slowed(rng, plain, from_frame=_TEN_MINUTES, to_frame=_TEN_MINUTES + rng.integers(80, 180))


def unequal_members(rng: np.random.Generator) -> Scenario:
    """Machines of four speeds share evenly what arrives; records of the second topic cost up to three times as much."""
    plain = _plain(rng, "unequal members", use=rng.uniform(0.6, 0.7), topics=2)
    return _unequal(rng, _costly(rng, plain))


def hopeless_partition(rng: np.random.Generator) -> Scenario:
    """One partition receives more than any member reads; another member has a backlog that can be helped."""
    plain = _plain(rng, "hopeless partition", use=rng.uniform(0.35, 0.45), members=(4, 10))
    owners = plain.range_owners(0)
    hopeless, behind = rng.choice(plain.n_members, 2, replace=False)
    partition = np.flatnonzero(owners == hopeless)[0]
    factor = np.ones(plain.n_partitions)
    factor[partition] = rng.uniform(1.1, 1.4) * _CAPACITY / plain.mean_rate[0, partition]
    lag = np.where(owners == behind, plain.mean_rate[0] * rng.uniform(3600, 7200), 0.0)
    return replace(plain, rate=plain.rate * factor, mean_rate=plain.mean_rate * factor, lag=np.floor(lag))


def pinned_fifth(rng: np.random.Generator) -> Scenario:
    """Unequal machines, and a fifth of the partitions are pinned."""
    plain = _unequal(rng, _plain(rng, "a fifth pinned", use=rng.uniform(0.55, 0.65)))
    pinned = np.zeros(plain.n_partitions, np.bool_)
    pinned[rng.choice(plain.n_partitions, plain.n_partitions // 5, replace=False)] = True
    return replace(plain, pinned=pinned)


def low_rate(rng: np.random.Generator) -> Scenario:
    """5 records/s in all, members that do a few per second, and 50,000 records behind on partitions of one member."""
    plain = _plain(rng, "low rate, hours behind", use=0.5, hours=5)
    factor = 5.0 / plain.mean_rate[0].sum()
    lag = np.zeros(plain.n_partitions)
    mine = np.flatnonzero(plain.range_owners(0) == rng.integers(plain.n_members))
    behind = rng.choice(mine, min(len(mine), int(rng.integers(2, 5))), replace=False)
    lag[behind] = np.floor(50_000 * rng.dirichlet(np.full(len(behind), 5.0)))
    return replace(
        plain,
        rate=plain.rate * factor,
        mean_rate=plain.mean_rate * factor,
        lag=lag,
        capacity=np.full_like(plain.capacity, rng.uniform(3.0, 6.0)),
    )


def drifting_hot_spot(rng: np.random.Generator) -> Scenario:
    """A run of partitions receives several times as much, and the run wanders once through the topic in five hours."""
    plain = _plain(rng, "drifting hot spot", use=rng.uniform(0.4, 0.5), hours=5)
    partitions, width = plain.n_partitions, plain.n_partitions / plain.n_members * rng.uniform(0.6, 1.0)
    centre = (np.arange(plain.frames) / plain.frames + rng.uniform()) * partitions
    away = np.abs(np.arange(partitions) - centre[:, None]) % partitions
    away = np.minimum(away, partitions - away)
    factor = 1 + rng.uniform(1.5, 2.5) * np.exp(-((away / width) ** 2))
    return replace(plain, rate=plain.rate * factor, mean_rate=plain.mean_rate * factor)


def day(rng: np.random.Generator) -> Scenario:
    """A day: two topics whose peaks are hours apart, with records of unlike cost, on machines of two speeds."""
    plain = _plain(rng, "a day", use=rng.uniform(0.45, 0.5), topics=2, hours=24, members=(3, 6))
    peaks = rng.uniform(0, 1) + np.array([0.0, rng.uniform(0.1, 0.3)])
    time = np.arange(plain.frames)[:, None] / plain.frames
    wave = 1 + rng.uniform(0.5, 0.7) * np.cos(2 * np.pi * (time - peaks[plain.topic_of]))
    capacity = plain.capacity * rng.permutation(np.linspace(0.6, 1.4, plain.n_members))
    plain = replace(plain, rate=plain.rate * wave, mean_rate=plain.mean_rate * wave, capacity=capacity)
    return _costly(rng, plain)


def rolling_restart(rng: np.random.Generator) -> Scenario:
    """Unequal machines; after half an hour, and again an hour later, each member is restarted in turn."""
    plain = _unequal(rng, _plain(rng, "rolling restart", use=rng.uniform(0.5, 0.6)))
    joined = plain.joined.copy()
    for begun in (_HOUR // 2, _HOUR * 3 // 2):
        for place, slot in enumerate(rng.permutation(plain.n_members)):
            down = begun + place * 6
            joined[down : down + int(rng.integers(1, 4)), slot] = False
    return replace(plain, joined=joined, capacity=plain.capacity * joined)


def some_do_not_follow(rng: np.random.Generator) -> Scenario:
    """A third of the members do not follow; one that does becomes slow."""
    plain = _plain(rng, "some do not follow", use=rng.uniform(0.45, 0.6), members=(4, 12))
    follows = np.ones(plain.n_members, np.bool_)
    follows[rng.choice(plain.n_members, plain.n_members // 3, replace=False)] = False
    slow = int(rng.choice(np.flatnonzero(follows)))
    slowed = _slowed(rng, plain, from_frame=_TEN_MINUTES, to_frame=plain.frames, slot=slow)
    return replace(slowed, follows=follows)


def busy(rng: np.random.Generator) -> Scenario:
    """80 to 95 % of the group's capacity arrives, unevenly: some members are above theirs."""
    return _plain(rng, "80 to 95 % use", use=rng.uniform(0.8, 0.95), spread=0.2)


def quiet(rng: np.random.Generator) -> Scenario:
    """Nothing is wrong: no plan is due."""
    return _plain(rng, "nothing wrong", use=rng.uniform(0.4, 0.7))


def unlike_topics(rng: np.random.Generator) -> Scenario:
    """Everybody reads two topics, records of the second cost five times as much, and a member becomes slow."""
    plain = _plain(rng, "topics of unlike cost", use=rng.uniform(0.5, 0.65), topics=2)
    costly = _costly(rng, plain, times=(5.0, 5.0))
    return _slowed(rng, costly, from_frame=_TEN_MINUTES, to_frame=plain.frames)


GENERATORS: tuple[Generator, ...] = (
    slow_member,
    recovering_member,
    unequal_members,
    hopeless_partition,
    pinned_fifth,
    low_rate,
    drifting_hot_spot,
    day,
    rolling_restart,
    some_do_not_follow,
    busy,
    quiet,
    unlike_topics,
)


def _plain(
    rng: np.random.Generator,
    name: str,
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
    partitions, frames = int(rng.integers(max(12, 3 * n), max(20, 5 * n) + 1)), hours * _HOUR
    topic_of = np.sort(np.arange(partitions) % topics).astype(np.int32)
    owners = range_owners(topic_of, np.arange(n))
    rate = rng.lognormal(0.0, 0.5, partitions)
    share = 1 + spread * rng.uniform(-1, 1, n)
    rate *= (share / share.mean() * use * _CAPACITY / np.bincount(owners, weights=rate, minlength=n))[owners]
    return Scenario(
        name=name,
        topic_of=topic_of,
        cost=np.ones(partitions),
        lag=np.zeros(partitions),
        rate=rate * rng.lognormal(-0.005, 0.1, (frames, partitions)),
        mean_rate=np.tile(rate, (frames, 1)),
        capacity=np.full((frames, n), _CAPACITY),
        joined=np.ones((frames, n), np.bool_),
        follows=np.ones(n, np.bool_),
        pinned=np.zeros(partitions, np.bool_),
        hears_s=rng.uniform(8.0, 16.0, n),
        hand_over_s=rng.uniform(3.0, 6.0, partitions),
    )


def _slowed(
    rng: np.random.Generator, plain: Scenario, *, from_frame: int, to_frame: int, slot: int | None = None
) -> Scenario:
    slot = int(rng.integers(plain.n_members)) if slot is None else slot
    owned: Bools = plain.range_owners(0) == slot
    # Slow enough that what it has is too much for it.
    work = float((plain.mean_rate[0] * plain.cost)[owned].sum())
    speed = min(float(rng.choice([1 / 2, 1 / 3])), 0.85 * work / _CAPACITY)
    capacity = plain.capacity.copy()
    capacity[from_frame:to_frame, slot] *= speed
    return replace(plain, capacity=capacity)


def _unequal(rng: np.random.Generator, plain: Scenario) -> Scenario:
    """Speeds of 0.5 to 1.75 of the mean."""
    speeds: Floats = rng.permutation(np.linspace(0.5, 1.75, plain.n_members))
    return replace(plain, capacity=plain.capacity * speeds / speeds.mean())


def _costly(
    rng: np.random.Generator, plain: Scenario, *, times: tuple[float, float] = (1.5, 3.0)
) -> Scenario:
    """Records of the second topic cost so many times as much; all together the work stays the same."""
    cost = np.where(plain.topic_of == 1, rng.uniform(*times), 1.0)
    work = plain.mean_rate.sum() / (plain.mean_rate * cost).sum()
    return replace(plain, cost=cost * work)
