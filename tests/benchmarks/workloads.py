"""An hour in the life of a group as a film: one frame every ten seconds, the same for every policy.

Each generator is a rule with a seed; none holds recorded data. The random walk is the one of Landau et al.
(arXiv 2206.11170): the write rate of each partition steps up or down by as much as `delta` of its range and is
clamped to it. The others are what operators of peers of this project report.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from assignor.model.arrays import Bools, Floats, Int32s

FRAME_S = 10
TOPICS, PARTITIONS_PER_TOPIC, MEMBERS = 4, 30, 12
PARTITIONS = TOPICS * PARTITIONS_PER_TOPIC
CAPACITY = 1000.0
# No partition alone is more than a member can read: no assignment could help that.
_LARGEST_RATE = 0.45 * CAPACITY


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workload:
    """F frames of a group with up to N members over up to P partitions."""

    name: str
    topic_of: Int32s
    """P entries."""
    lag: Floats
    """P entries: records at the start."""
    rate: Floats
    """F x P: records per second that arrive."""
    capacity: Floats
    """F x N: records per second the member reads, 0 while it is down."""
    joined: Bools
    """F x N: is the member in the group; one that is down is, until its session times out."""
    exists: Bools
    """F x P: is the partition there."""
    readable: Bools
    """F x P: False where a record stops every reader."""
    known: Bools
    """F x P: False where nothing is committed, so that lag counts as 0 (auto.offset.reset=latest)."""

    @property
    def frames(self) -> int:
        """F."""
        return len(self.rate)


Generator = Callable[[np.random.Generator, int], Workload]


def backlog(rng: np.random.Generator, frames: int) -> Workload:
    """Ten minutes of very uneven arrivals have piled up."""
    steady = _steady("backlog", pareto_rates(rng, 0.6), frames)
    return replace(steady, lag=np.floor(steady.rate[0] * 600 * rng.uniform(0.2, 1.8, PARTITIONS)))


def unlike_members(rng: np.random.Generator, frames: int) -> Workload:
    """The backlog, on members of which some are twice as fast as others."""
    kinds = np.repeat([600.0, 1000.0, 1000.0, 1400.0], MEMBERS // 4)
    capacity = np.tile(rng.permutation(kinds), (frames, 1))
    return replace(backlog(rng, frames), name="unlike members", capacity=capacity)


def zipf_keys(rng: np.random.Generator, frames: int) -> Workload:
    """Steady traffic whose keys follow Zipf's law: a few partitions carry most of it."""
    return _steady("zipf keys", zipf_rates(rng, 0.8), frames)


def random_walk(rng: np.random.Generator, frames: int) -> Workload:
    """Each rate steps every 30 s by up to a quarter of its range, clamped (Landau et al., delta 25)."""
    low, high, step = 0.0, 2 * 0.7 * MEMBERS * CAPACITY / PARTITIONS, 3
    rate = rng.uniform(low, high, PARTITIONS)
    walk = []
    for _ in range(-(-frames // step)):
        walk.append(rate)
        rate = np.clip(rate + rng.uniform(-0.25, 0.25, PARTITIONS) * (high - low), low, high)
    film = np.repeat(np.array(walk), step, axis=0)[:frames]
    return replace(_steady("random walk", film[0], frames), rate=film)


def hot_spots(rng: np.random.Generator, frames: int) -> Workload:
    """Every five minutes three partitions become twenty times as busy, for ten minutes."""
    rates = pareto_rates(rng, 0.5)
    film = np.tile(rates, (frames, 1))
    for begun in range(0, frames, 300 // FRAME_S):
        hot = rng.choice(PARTITIONS, 3, replace=False)
        film[begun : begun + 600 // FRAME_S, hot] = np.clip(rates[hot] * 20, 150, _LARGEST_RATE)
    return replace(_steady("hot spots", rates, frames), rate=film)


def diurnal(rng: np.random.Generator, frames: int) -> Workload:
    """A day in the time of the film: each topic has its busy hour at another time."""
    rates = pareto_rates(rng, 0.6)
    steady = _steady("diurnal", rates, frames)
    phase = 2 * np.pi * (np.arange(frames)[:, None] / frames + steady.topic_of / TOPICS)
    return replace(steady, rate=np.minimum(rates * (1 + 0.8 * np.sin(phase)), _LARGEST_RATE))


def burst(rng: np.random.Generator, frames: int) -> Workload:
    """A twelfth of the partitions gets ten times its traffic for ten minutes."""
    rates = pareto_rates(rng, 0.5)
    film = np.tile(rates, (frames, 1))
    film[_span(600, 1200), :] = np.where(
        rng.permutation(PARTITIONS) < PARTITIONS // 12, np.minimum(rates * 10, _LARGEST_RATE), rates
    )
    return replace(_steady("10x burst", rates, frames), rate=film)


def slow_member(rng: np.random.Generator, frames: int) -> Workload:
    """From the tenth minute on one member reads at 40 % of its rate."""
    steady = _steady("slow member", pareto_rates(rng, 0.6), frames)
    capacity = steady.capacity.copy()
    capacity[_span(600, None), rng.integers(MEMBERS)] *= 0.4
    return replace(steady, capacity=capacity)


def dead_members(rng: np.random.Generator, frames: int) -> Workload:
    """Two members die; their sessions time out 45 s later, and half an hour later they are back."""
    steady = _steady("dead members", pareto_rates(rng, 0.6), frames)
    capacity, joined = steady.capacity.copy(), steady.joined.copy()
    dead = rng.choice(MEMBERS, 2, replace=False)
    capacity[_span(600, 2400), dead[:, None]] = 0.0
    joined[_span(645, 2400), dead[:, None]] = False
    return replace(steady, capacity=capacity, joined=joined)


def stuck_partition(rng: np.random.Generator, frames: int) -> Workload:
    """A record that nobody can read stops a busy partition for twenty minutes."""
    steady = _steady("stuck partition", pareto_rates(rng, 0.6), frames)
    readable = steady.readable.copy()
    readable[_span(600, 1800), np.argsort(steady.rate[0])[-3]] = False
    return replace(steady, readable=readable)


def rolling_restart(rng: np.random.Generator, frames: int) -> Workload:
    """Static members are restarted one after the other, 20 s each, within their session timeout."""
    steady = _steady("rolling restart", pareto_rates(rng, 0.6), frames)
    capacity = steady.capacity.copy()
    for m in range(MEMBERS):
        capacity[_span(600 + 60 * m, 620 + 60 * m), m] = 0.0
    return replace(steady, capacity=capacity)


def growing_topic(rng: np.random.Generator, frames: int) -> Workload:
    """One topic has half of its partitions until the tenth minute; the new ones get as much traffic."""
    steady = _steady("growing topic", pareto_rates(rng, 0.6), frames)
    exists = steady.exists.copy()
    exists[: 600 // FRAME_S, PARTITIONS_PER_TOPIC // 2 : PARTITIONS_PER_TOPIC] = False
    return replace(steady, exists=exists, rate=steady.rate * exists)


def unknown_offsets(rng: np.random.Generator, frames: int) -> Workload:
    """The backlog, but the commits of a tenth of the partitions are unknown for twenty minutes."""
    piled = backlog(rng, frames)
    known = piled.known.copy()
    known[: 1200 // FRAME_S, rng.permutation(PARTITIONS) < PARTITIONS // 10] = False
    return replace(piled, name="unknown offsets", known=known)


GENERATORS: tuple[Generator, ...] = (
    backlog,
    unlike_members,
    zipf_keys,
    random_walk,
    hot_spots,
    diurnal,
    burst,
    slow_member,
    dead_members,
    stuck_partition,
    rolling_restart,
    growing_topic,
    unknown_offsets,
)

FEW: tuple[Generator, ...] = (backlog, hot_spots, slow_member, dead_members)
"""One of each: lag that is there, load that moves, a member that changes, members that come and go."""


def pareto_rates(rng: np.random.Generator, utilisation: float) -> Floats:
    """P heavy-tailed rates that add up to this share of the members' capacity, with the largest ones capped."""
    return _scaled(np.minimum(rng.pareto(1.3, PARTITIONS) + 0.05, 40.0), utilisation)


def zipf_rates(rng: np.random.Generator, utilisation: float) -> Floats:
    """P rates; the k-th largest is 1/k of the largest."""
    return _scaled(rng.permutation(1.0 / np.arange(1, PARTITIONS + 1)), utilisation)


def _scaled(weights: Floats, utilisation: float) -> Floats:
    """Cap the largest rates and give the excess to the others."""
    total = utilisation * MEMBERS * CAPACITY
    rates: Floats = weights / weights.sum() * total
    while rates.max() > _LARGEST_RATE:
        cut = rates >= _LARGEST_RATE
        rates[cut] = _LARGEST_RATE
        rates[~cut] *= (total - rates[cut].sum()) / rates[~cut].sum()
    return rates


def _steady(name: str, rates: Floats, frames: int) -> Workload:
    """A workload in which nothing changes; the generators start from it."""
    always = np.ones((frames, PARTITIONS), np.bool_)
    return Workload(
        name=name,
        topic_of=np.repeat(np.arange(TOPICS, dtype=np.int32), PARTITIONS_PER_TOPIC),
        lag=np.zeros(PARTITIONS),
        rate=np.tile(rates, (frames, 1)),
        capacity=np.full((frames, MEMBERS), CAPACITY),
        joined=np.ones((frames, MEMBERS), np.bool_),
        exists=always,
        readable=always,
        known=always,
    )


def _span(begin_s: int, end_s: int | None) -> slice:
    return slice(begin_s // FRAME_S, None if end_s is None else end_s // FRAME_S)
