"""Groups of any size for Kafka's assignors and ours: one description, from which both sides build their own form.

    topics    t0000 t0001 ...     members    m00000 m00001 ...     zero-padded, so name order is number order
    owner     one entry for each partition, topics in order: a place in `members`, or -1

Grid and names of the parameters: Kafka's ClientSideAssignorBenchmark. Its incremental runs time a fresh group, as it
builds its subscriptions before it has previous assignments; here a member joins a group that owns everything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assignor.model.arrays import Floats, Int32s, Int64s
from assignor.model.by_member import by_member
from assignor.model.group import Group
from assignor.model.members import Member, build_group
from assignor.model.topics import Topics

GENERATION = 7
_BUCKETS = 5
_UTILISATION = 0.7
_LARGEST_SHARE = 0.3
"""Of what one member can drain, for the busiest partition."""
_SEED = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shape:
    """A group before it takes a form."""

    topics: dict[str, int]
    """Partition counts, in name order."""
    subscriptions: tuple[tuple[str, ...], ...]
    """The distinct ones."""
    subscription_of: Int32s
    """One of them for each member."""
    owner: Int32s
    """Member of each partition, -1 for nobody; all claims are of one generation."""

    @property
    def n_members(self) -> int:
        """N."""
        return len(self.subscription_of)

    @property
    def n_partitions(self) -> int:
        """P."""
        return len(self.owner)

    def first(self, n_members: int) -> "Shape":
        """The group with only its first members; what others owned is free."""
        owner = np.where(self.owner < n_members, self.owner, np.int32(-1))
        return replace(self, subscription_of=self.subscription_of[:n_members], owner=owner)

    def owned_by(self, owner: Int32s) -> "Shape":
        """The group in which these members own the partitions."""
        return replace(self, owner=owner)

    def member_ids(self) -> list[str]:
        """N ids, ascending."""
        return [f"m{m:05d}" for m in range(self.n_members)]

    def members(self) -> list[Member]:
        """The members as a plug-in has them: Python objects."""
        topics = Topics.of(self.topics)
        bare = [
            Member(member_id=name, topics=self.subscriptions[s])
            for name, s in zip(self.member_ids(), self.subscription_of, strict=True)
        ]
        owned = by_member(build_group(topics=topics, members=bare), self.owner)
        return [replace(m, owned=owned[m.member_id], generation=GENERATION) for m in bare]

    def group(self, *, lag: Int64s | None = None, rate: Floats | None = None) -> Group:
        """The array form; a group with rates has equal members that they load to seven tenths."""
        built = build_group(topics=Topics.of(self.topics), members=self.members(), lag=lag, rate=rate)
        if rate is None:
            return built
        return replace(built, capacity=np.full(self.n_members, rate.sum() / self.n_members / _UTILISATION))

    def question(self, assignor: str, *, warm_up: int, times: int) -> dict[str, Any]:
        """What the Java side is asked, see `Oracle.java`."""
        return {
            "do": "time",
            "assignor": assignor,
            "topics": self.topics,
            "sets": self.subscriptions,
            "members": [
                [name, int(s)] for name, s in zip(self.member_ids(), self.subscription_of, strict=True)
            ],
            "owner": self.owner.astype(">i4").tobytes().hex(),
            "generation": GENERATION,
            "warm_up": warm_up,
            "times": times,
        }


def equal(*, partitions: int, topics: int, members: int) -> Shape:
    """Every member subscribes to every topic; nothing is owned."""
    counts = _topics(topics, partitions // topics)
    return _fresh(counts, [tuple(counts)], np.zeros(members, np.int32))


def buckets(*, partitions: int, topics: int, members: int) -> Shape:
    """Kafka's heterogeneous group: five runs of members, each of which reads its own fifth of the topics."""
    counts = _topics(topics, partitions // topics)
    names = list(counts)
    subscriptions = [
        tuple(names[b * topics // _BUCKETS : (b + 1) * topics // _BUCKETS]) for b in range(_BUCKETS)
    ]
    return _fresh(counts, subscriptions, np.arange(members, dtype=np.int32) * _BUCKETS // members)


def windows(*, partitions: int, topics: int, members: int, width: int) -> Shape:
    """Each member reads `width` topics in a row, the first member the first ones, the last the last."""
    counts = _topics(topics, partitions // topics)
    names = list(counts)
    starts, subscription_of = np.unique(
        np.arange(members) * (topics - width + 1) // members, return_inverse=True
    )
    subscriptions = [tuple(names[start : start + width]) for start in starts.tolist()]
    return _fresh(counts, subscriptions, subscription_of.astype(np.int32))


def heavy_tailed_lag(n_partitions: int) -> Int64s:
    """Records by partition: most have little, a few have nearly all, the same at every call."""
    lag: Int64s = (np.random.default_rng(_SEED).pareto(1.2, n_partitions) * 1000).astype(np.int64)
    return lag


def heavy_tailed_rate(n_partitions: int, n_members: int) -> Floats:
    """Records per second by partition; no partition is more than a member can drain."""
    rate: Floats = np.random.default_rng(_SEED + 1).pareto(1.5, n_partitions)
    return np.minimum(rate, _LARGEST_SHARE * rate.sum() / n_members)


def _topics(topics: int, partitions_of_topic: int) -> dict[str, int]:
    return {f"t{t:04d}": partitions_of_topic for t in range(topics)}


def _fresh(
    counts: dict[str, int], subscriptions: Sequence[tuple[str, ...]], subscription_of: Int32s
) -> Shape:
    return Shape(
        topics=counts,
        subscriptions=tuple(subscriptions),
        subscription_of=subscription_of,
        owner=np.full(sum(counts.values()), -1, np.int32),
    )
