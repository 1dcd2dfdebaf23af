"""Groups for tests: short builders, and hypothesis strategies for groups as hostile as real ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice, permutations
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from assignor.model.assignment import Assignment
from assignor.model.claims import UNCLAIMED, Ownership
from assignor.model.group import Group
from assignor.model.members import Member, build_group
from assignor.model.subscriptions import Subscriptions
from assignor.model.topics import Topics

ValueT = TypeVar("ValueT")

TOPIC_NAMES = ("a", "b", "clicks", "\U0001f600", "\ue000")
MEMBER_IDS = ("m1", "m10", "m2", "Z", "\U0001f600", "\ue000", "kafka-1")
INSTANCES = ("i1", "i2", "m1")


def member(
    member_id: str,
    *topics: str,
    owned: Mapping[str, Sequence[int]] | None = None,
    generation: int = 1,
    instance_id: str | None = None,
    capacity: float | None = None,
) -> Member:
    """A member in one line."""
    return Member(
        member_id=member_id,
        topics=topics,
        owned=owned or {},
        generation=generation,
        instance_id=instance_id,
        capacity=capacity,
    )


def group(
    partitions: Mapping[str, int],
    *members: Member,
    lags: Mapping[str, Sequence[int]] | None = None,
    rates: Mapping[str, Sequence[float]] | None = None,
) -> Group:
    """A group in one expression; topics without lags or rates have zeros."""
    topics = Topics.of(partitions)
    lag = [records for t in topics.names for records in (lags or {}).get(t, [0] * partitions[t])]
    rate = [records for t in topics.names for records in (rates or {}).get(t, [0.0] * partitions[t])]
    return build_group(
        topics=topics, members=members, lag=np.array(lag, np.int64), rate=np.array(rate, np.float64)
    )


def equal_group(n_partitions: int, n_topics: int, n_members: int) -> Group:
    """A large group of equal topics, nothing owned, everybody subscribed, straight from arrays."""
    counts = np.full(n_topics, n_partitions // n_topics, np.int64)
    topics = Topics(names=tuple(f"t{t:06d}" for t in range(n_topics)), counts=counts)
    n = topics.n_partitions
    return Group(
        topics=topics,
        member_ids=tuple(f"m{m:06d}" for m in range(n_members)),
        subscriptions=Subscriptions.everyone(n_topics=n_topics, n_members=n_members),
        ownership=Ownership(
            holder=np.full(n, -1, np.int32),
            contested=np.zeros(n, np.bool_),
            generation=np.full(n, UNCLAIMED, np.int32),
        ),
        lag=np.zeros(n, np.int64),
        rate=np.zeros(n),
        capacity=None,
    )


def owned_by(base: Group, target: Assignment) -> Group:
    """The group once every member holds what `target` gives it."""
    holder = target.member.copy()
    uncontested = np.zeros(base.n_partitions, np.bool_)
    generation = np.where(holder >= 0, 1, UNCLAIMED).astype(np.int32)
    ownership = Ownership(holder=holder, contested=uncontested, generation=generation)
    return replace(base, ownership=ownership, newest_generation=1)


def by_name(base: Group, target: Assignment) -> dict[str, list[str]]:
    """Partitions of each member as people write them, in (topic, number) order."""
    return {
        member_id: [base.topics.name(int(partition)) for partition in np.nonzero(target.member == m)[0]]
        for m, member_id in enumerate(base.member_ids)
    }


@dataclass(frozen=True, kw_only=True)
class Description:
    """A group before it is built, so that a test can build it in another order."""

    partitions: dict[str, int]
    members: tuple[Member, ...]
    lags: dict[str, list[int]]
    rates: dict[str, list[float]]

    def build(self) -> Group:
        """The array form."""
        return group(self.partitions, *self.members, lags=self.lags, rates=self.rates)

    def reversed(self) -> "Description":
        """The same group with every order turned around."""
        return Description(
            partitions=dict(reversed(self.partitions.items())),
            members=tuple(replace(m, topics=m.topics[::-1]) for m in self.members[::-1]),
            lags=self.lags,
            rates=self.rates,
        )


# Drawing costs by the choice, more than most of what is tested. A blob of bytes is one choice, and shrinks to zeros
# like a list of integers; so what is drawn of one kind is read off the bytes of one blob. All blobs have one size:
# hypothesis tries what was drawn in one place in another, and where it does not fit it puts zeros.
BLOBS = st.binary(min_size=32, max_size=32)
_TOPIC_ORDERS = st.sampled_from(tuple(permutations(TOPIC_NAMES)))
_MEMBER_ORDERS = st.sampled_from(tuple(permutations(MEMBER_IDS)))
_MOST_CLAIMS = 12


def picked(options: Sequence[ValueT], blob: bytes, n: int) -> list[ValueT]:
    """So many of the options, one for each byte, over and over again; all of them about as often."""
    return [options[byte % len(options)] for byte in islice(cycle(blob), n)]


def _member(member_id: str, drawn: bytes, names: Sequence[str], *, equal: bool) -> Member:
    mask, generation, instance, capacity, n_claims, *claims = drawn
    topics = (*names, "gone")
    owned: dict[str, list[int]] = {}
    for claim in claims[: n_claims % (_MOST_CLAIMS + 1)]:
        owned.setdefault(topics[claim % len(topics)], []).append(claim // len(topics) % 10 - 1)
    return Member(
        member_id=member_id,
        topics=tuple(names) if equal else tuple(t for i, t in enumerate(topics) if mask >> i & 1),
        instance_id=(None, None, None, *INSTANCES)[instance % 6],
        owned=owned,
        generation=(0, 1, 2, -1)[generation % 4],
        capacity=(None, None, None, 10.0, 20.0, 50.0)[capacity % 6],
    )


@st.composite
def descriptions(draw: st.DrawFn, *, equal: bool | None = None, max_lag: int = 6) -> Description:
    """Groups with stale, contested, out-of-range, unknown and repeated claims, odd names, static members.

    Args:
        draw: Given by hypothesis.
        equal: Equal subscriptions; by default either.
        max_lag: Small by default, so that ties are common.
    """
    names = draw(_TOPIC_ORDERS)[: draw(st.integers(1, 4))]
    partitions = dict(zip(names, picked(range(8), draw(BLOBS), len(names)), strict=True))
    drawn = [draw(BLOBS) for _ in range(draw(st.integers(0, 6)))]
    ids = draw(_MEMBER_ORDERS)
    same = draw(st.booleans()) if equal is None else equal
    n = sum(partitions.values())
    lags = iter([byte * 5 % (max_lag + 1) for byte in draw(BLOBS)[:n]])
    rates = iter(picked((0.0, 1.0, 4.0), draw(BLOBS), n))
    return Description(
        partitions=partitions,
        members=tuple(_member(i, m, names, equal=same) for i, m in zip(ids, drawn, strict=False)),
        lags={t: list(islice(lags, count)) for t, count in partitions.items()},
        rates={t: list(islice(rates, count)) for t, count in partitions.items()},
    )
