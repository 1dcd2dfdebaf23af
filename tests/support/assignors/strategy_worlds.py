"""Groups at random for the strategies' assignors, as Java's and Python's leaders take them.

A case is a JSON document as `Strategies.java` reads it.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from assignor.clients.plugin.leader import LeaderDecision, decide
from assignor.clients.plugin.membership import under_strategy
from assignor.clients.plugin.user_data import (
    AssignmentData,
    SubscriptionData,
    encode_assignment_data,
    encode_subscription_data,
)
from assignor.protocol.kafka.consumer import TopicPartitions
from assignor.protocol.kafka.sticky import Claims
from assignor.protocol.ranges import format_ranges, parse_ranges
from assignor.strategies.registry import strategy
from tests.support.java.java_lives import IDS, Document, Joined

TOPICS = ("t", "u", "\u00fc", "v")


def world(random: Random, name: str, *, cooperative: bool) -> Document:
    """A group with claims of a past generation, most of them true."""
    ids = sorted(random.sample(IDS, random.randint(1, 5)))
    counts = {topic: random.choice([0, 1, 2, 5, 7]) for topic in random.sample(TOPICS, random.randint(1, 4))}
    generation = random.randint(0, 5)
    owners = {(t, n): random.choice([*ids, None]) for t, count in counts.items() for n in range(count + 1)}
    subscribed = random.choice([sorted(counts), None])
    return {
        "strategy": name,
        "cooperative": cooperative,
        "counts": {topic: format_ranges(range(count)) for topic, count in counts.items()},
        "lags": _lags(random, counts),
        "members": {
            name: _member(
                random,
                name,
                topics=random.sample([*counts, "gone"], random.randint(0, len(counts)))
                if subscribed is None
                else subscribed,
                owners=owners,
                generation=generation,
                held=cooperative and random.random() < 0.8,
            )
            for name in ids
        },
        "assigned": _assigned(random, counts, generation),
    }


def _lags(random: Random, counts: Mapping[str, int]) -> dict[str, str]:
    most = random.choice([0, 3, 1000, 2**40])
    lags = {t: [random.randint(0, most) for _ in range(count)] for t, count in counts.items() if count}
    if lags and random.random() < 0.1:
        lags.popitem()
    return {topic: ",".join(map(str, numbers)) for topic, numbers in lags.items()}


def _member(
    random: Random,
    name: str,
    *,
    topics: list[str],
    owners: Mapping[tuple[str, int], str | None],
    generation: int,
    held: bool,
) -> Document:
    owned: dict[str, tuple[int, ...]] = {}
    for (topic, n), owner in owners.items():
        # Now and then two claim one partition, or one that is not there.
        if owner == name or random.random() < 0.03:
            owned[topic] = (*owned.get(topic, ()), n)
    claimed = generation if random.random() < 0.8 else random.randint(-1, generation)
    claims = Claims(owned=owned, generation=claimed)
    data: bytes | None = encode_subscription_data(SubscriptionData(claims=claims, plan_epoch=0, held=held))
    if random.random() < 0.05:
        data = random.choice([None, b"", b"\xff\xff", (data or b"")[:-1]])
    # A member that was not told of a loss says that it holds what its client has given up.
    owns = held and random.random() < 0.9
    return {
        "instance": random.choice([None, None, "i" + name, "i"]),
        "topics": dict.fromkeys(topics, ""),
        "user_data": None if data is None else data.hex(),
        "owned": {t: format_ranges(numbers) for t, numbers in owned.items()} if owns else {},
        "generation": claimed,
    }


def _assigned(random: Random, counts: Mapping[str, int], generation: int) -> Document:
    data = encode_assignment_data(AssignmentData(epoch=random.choice([0, 1, 9, 2**31, 2**40])))
    user_data = random.choice([data, data, None, b"\0"])
    return {
        "partitions": {t: format_ranges(range(random.randint(1, n))) for t, n in sorted(counts.items()) if n},
        "user_data": None if user_data is None else user_data.hex(),
        "generation": generation,
    }


def _by_topic(ranges: Mapping[str, str]) -> TopicPartitions:
    return {topic: parse_ranges(text, at_most=1000) for topic, text in ranges.items()}


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _joined(name: str, member: Document) -> Joined:
    return Joined(
        member_id=name,
        topics=list(member["topics"]),
        user_data=_bytes(member["user_data"]),
        instance_id=member["instance"],
        owned=_by_topic(member["owned"]),
        generation=member["generation"],
    )


def _known(one: Document) -> tuple[dict[str, int], list[Joined], dict[tuple[str, int], int]]:
    """Counts of the topics that anybody subscribes to, members and lags of a case."""
    members = [_joined(name, member) for name, member in one["members"].items()]
    numbers = _by_topic(one["counts"])
    # What the plug-ins tell a leader: nobody looks up a topic that nobody subscribes to.
    counts = {topic: len(numbers.get(topic, ())) for member in members for topic in member.topics}
    lags = {(t, n): int(lag) for t, text in one["lags"].items() for n, lag in enumerate(text.split(","))}
    return counts, members, lags


def decided(one: Document) -> LeaderDecision:
    """What Python's leader decides."""
    counts, members, lags = _known(one)
    return decide(counts=counts, members=members, strategy=strategy(one["strategy"]), plan=None, lags=lags)


def answered(one: Document) -> dict[str, Any]:
    """What `Strategies.java` answers to the same case, by Python's member."""
    counts, members, lags = _known(one)
    membership = under_strategy(one["strategy"], knows_lag=True)
    answers = membership.lead(counts=counts, members=members, now_ms=0, lags=lags)
    assigned = one["assigned"]
    partitions = _by_topic(assigned["partitions"])
    membership.assigned(
        partitions, _bytes(assigned["user_data"]), assigned["generation"], member="m", now_ms=0
    )
    joins = membership.user_data(partitions if one["cooperative"] else {})
    return {
        "placed": {n: {t: list(p) for t, p in placed.items()} for n, (placed, _) in answers.items()},
        "user_data": {name: (data or b"").hex() for name, (_, data) in answers.items()},
        "joins": (joins or b"").hex(),
    }
