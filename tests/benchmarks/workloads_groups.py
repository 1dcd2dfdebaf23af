"""Groups at one moment, of many kinds, for the question how close an assignment comes to the best there is."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from assignor.model.arrays import Floats, Int64s
from assignor.model.group import Group
from assignor.strategies.registry import strategy
from tests.benchmarks.quality_world import array_group
from tests.support.assignors.groups import owned_by

_TOPICS = 4
_CAPACITY = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of group to draw from."""

    name: str
    partitions: int
    members: int
    utilisation: float
    """Arrivals over capacity."""
    lag: Literal["like rates", "independent", "alike"]
    """Is there lag where much arrives, anywhere but heavy-tailed, or everywhere about the same."""
    unlike_members: bool = False


KINDS = (
    Kind(name="lag like rates", partitions=48, members=8, utilisation=0.5, lag="like rates"),
    Kind(name="lag anywhere", partitions=48, members=8, utilisation=0.5, lag="independent"),
    Kind(name="lag anywhere, larger", partitions=200, members=20, utilisation=0.5, lag="independent"),
    Kind(name="busy", partitions=48, members=8, utilisation=0.8, lag="independent"),
    Kind(name="busy, larger", partitions=200, members=20, utilisation=0.8, lag="independent"),
    Kind(name="idle, lag alike", partitions=48, members=8, utilisation=0.05, lag="alike"),
    Kind(
        name="unlike members",
        partitions=100,
        members=12,
        utilisation=0.6,
        lag="independent",
        unlike_members=True,
    ),
    Kind(name="few partitions", partitions=12, members=4, utilisation=0.5, lag="independent"),
)


def draw(kind: Kind, seed: int) -> Group:
    """A group of this kind under the assignment of `range`, with ten minutes of capacity in lag at most.

    Its work can be done: arrivals stay below capacity and no partition needs more than half a member.
    """
    rng = np.random.default_rng([seed, *kind.name.encode()])
    capacity = np.full(kind.members, _CAPACITY)
    if kind.unlike_members:
        capacity *= rng.choice([0.6, 1.0, 1.4], kind.members)
    total = float(capacity.sum())
    rate = _shares(rng, kind.partitions, 0.6, most=0.4 / kind.members / kind.utilisation) * total
    group = array_group(
        counts=np.full(_TOPICS, kind.partitions // _TOPICS, np.int64),
        lag=_lag(rng, kind, rate, total),
        rate=rate * kind.utilisation,
        capacity=capacity,
        holder=np.full(kind.partitions, -1, np.int32),
    )
    return owned_by(group, strategy("range").assign(group, {}))


def _lag(rng: np.random.Generator, kind: Kind, rate: Floats, total: float) -> Int64s:
    if kind.lag == "like rates":
        seconds = rng.uniform(0.2, 1.8, kind.partitions)
        return (rate * 300 * seconds).astype(np.int64)
    if kind.lag == "alike":
        return rng.integers(1, int(600 * total / kind.partitions), kind.partitions)
    shares = _shares(rng, kind.partitions, 0.8, most=0.5 / kind.members)
    return (shares * total * 300).astype(np.int64)


def _shares(rng: np.random.Generator, n: int, exponent: float, *, most: float) -> Floats:
    """Shares of one by Zipf's law in random order, none above `most` or, if that is little, an even one."""
    shares = np.arange(1, n + 1) ** -exponent
    shares /= shares.sum()
    most = max(most, 1.5 / n)
    while shares.max() > most * (1 + 1e-9):
        cut = shares >= most
        shares[cut] = most
        shares[~cut] *= (1 - shares[cut].sum()) / shares[~cut].sum()
    return rng.permutation(shares)
