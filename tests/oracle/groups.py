"""Random groups as JSON cases, so that Kafka's code and ours read the very same text."""

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.oracle.kafka_assignors import Document

EXAMPLES_VARIABLE = "LAGWISE_ORACLE_EXAMPLES"
"""How many groups each test asks about; thousands over all tests by default, ten times as many in `make fault`."""

MANY = settings(
    max_examples=int(os.environ.get(EXAMPLES_VARIABLE, "300")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
SOME = settings(MANY, max_examples=MANY.max_examples * 2 // 3)
"""For codecs, which have fewer ways to differ."""

# UTF-16 puts the first of these two before the second, code points the other way round.
_ODD_NAMES = ("\U0001f600", "\ue000")
_TOPICS = ("a", "a.b", "a-1", "b", "clicks", "é", "t" * 249, *_ODD_NAMES)
_MEMBERS = ("m1", "m10", "m2", "Z", "é.é", "kafka-1.2", "m" * 255, *_ODD_NAMES)
_INSTANCES = ("i1", "i2", "m1", "Z.1", "i" * 255, *_ODD_NAMES)
_RACKS = ("r0", "r1", "r2")
_NO_TOPIC = "gone"
_EQUAL = 0.2
"""Share of churned groups whose members all want the same."""
_LEAST_CLAIM = -1
_CLAIMED_NUMBERS = 11
"""Partition numbers -1 to 9 are claimed, of topics with 0 to 8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """A member before names are given to what it was drawn as."""

    topics: int
    generation: int
    rack: int
    claims: bytes


# Bytes are one cheap draw each, and shrink to short and zero like lists of integers.
_DRAWN_MEMBERS = st.lists(
    st.builds(
        _Drawn,
        topics=st.integers(0, 63),
        generation=st.integers(-1, 3),
        rack=st.integers(0, 5),
        claims=st.binary(max_size=14),
    ),
    min_size=1,
    max_size=8,
)


@st.composite
def hostile(draw: st.DrawFn, *, equal: bool | None = None) -> Document:
    """Stale, contested, out-of-range and foreign claims, empty subscriptions, static members, racks, odd names.

    Args:
        draw: Given by hypothesis.
        equal: Equal subscriptions; by default either.
    """
    topics = draw(st.lists(st.sampled_from(_TOPICS), min_size=1, max_size=5, unique=True))
    sizes = draw(st.binary(min_size=len(topics), max_size=len(topics)))
    drawn = draw(_DRAWN_MEMBERS)
    names = random.Random(draw(st.integers(0, 2**16)))
    same = draw(st.booleans()) if equal is None else equal
    ids = names.sample(_MEMBERS, len(drawn))
    instances = names.sample((*_INSTANCES, *[None] * len(_INSTANCES)), len(drawn))
    counts = {topic: size % 9 for topic, size in zip(topics, sizes, strict=True)}
    document: Document = {
        "topics": counts,
        "members": {
            member_id: _member(member, topics, instance, equal=same)
            for member_id, member, instance in zip(ids, drawn, instances, strict=True)
        },
    }
    replicas = draw(st.none() | st.binary(min_size=8, max_size=8))
    if replicas is not None:
        document["racks"] = {t: [_replica_racks(replicas[p]) for p in range(n)] for t, n in counts.items()}
    return document


def _member(drawn: _Drawn, topics: Sequence[str], instance: str | None, *, equal: bool) -> Document:
    known = (*topics, _NO_TOPIC)
    owned: dict[str, list[int]] = {}
    for claim in drawn.claims:
        topic, number = known[claim % len(known)], claim // len(known) % _CLAIMED_NUMBERS + _LEAST_CLAIM
        # Kafka's serializers take a claim once: a member that repeats one is another client's doing.
        if number not in owned.setdefault(topic, []):
            owned[topic].append(number)
    return {
        "topics": list(topics) if equal else [t for i, t in enumerate(known) if drawn.topics >> i & 1],
        "owned": owned,
        "generation": drawn.generation,
        "instance": instance,
        "rack": (*_RACKS, "elsewhere", "", None)[drawn.rack],
    }


def _replica_racks(bits: int) -> list[str]:
    return [rack for i, rack in enumerate(_RACKS) if bits >> i & 1]


def orderly(*, equal: bool | None = None) -> st.SearchStrategy[Document]:
    """Groups that Kafka's sticky assignors can take: still stale and contested claims, racks and odd names.

    Without members that want nothing, and without claims on what is not there or not subscribed to. Over these
    Kafka's classes throw, keep partitions that do not exist, or give partitions to members that never asked.
    """
    return hostile(equal=equal).map(_in_order).filter(lambda document: document["members"])


def _in_order(document: Document) -> Document:
    counts = document["topics"]
    members = {
        name: member | {"owned": _possible(member, counts)}
        for name, member in document["members"].items()
        if member["topics"]
    }
    return document | {"members": members}


def _possible(member: Document, counts: dict[str, int]) -> dict[str, list[int]]:
    return {
        topic: [number for number in numbers if 0 <= number < counts.get(topic, 0)]
        for topic, numbers in member["owned"].items()
        if topic in member["topics"]
    }


@st.composite
def churned(draw: st.DrawFn, *, equal: bool | None = None) -> Document:
    """A settled group of some size in which a member was replaced, a subscription changed, a topic grew.

    Who owned what is settled in a way that no assignor here would choose, so that there is something to mend.
    """
    rng = random.Random(draw(st.integers(0, 2**32)))
    topics = {f"t{t}": rng.randint(1, 12) for t in range(rng.randint(2, 12))}
    same = rng.random() < _EQUAL if equal is None else equal
    subscribed = {f"m{m}": _some_topics(rng, topics, equal=same) for m in range(rng.randint(2, 24))}
    owned: dict[str, dict[str, list[int]]] = {member: {} for member in subscribed}
    for topic, count in topics.items():
        readers = [member for member, wanted in subscribed.items() if topic in wanted]
        for number in range(count if readers else 0):
            owned[rng.choice(readers)].setdefault(topic, []).append(number)
    left, changed, grown = (
        rng.choice(list(subscribed)),
        rng.choice(list(subscribed)),
        rng.choice(list(topics)),
    )
    topics[grown] += rng.randint(0, 6)
    subscribed[changed] = _some_topics(rng, topics, equal=same)
    members = {
        member: {"topics": wanted, "owned": owned[member], "generation": 1}
        for member, wanted in subscribed.items()
        if member != left
    }
    members["new"] = {"topics": _some_topics(rng, topics, equal=same)}
    return {"topics": topics, "members": members}


def _some_topics(rng: random.Random, topics: dict[str, int], *, equal: bool) -> list[str]:
    return list(topics) if equal else rng.sample(list(topics), rng.randint(1, min(4, len(topics))))
