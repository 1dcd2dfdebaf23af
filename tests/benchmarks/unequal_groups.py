"""Groups whose members subscribe to different topics, as they are when something changes: the hard case of the sticky
assignors.

A member has joined, a member has left, or a topic was added; everybody owns what the most even assignment before the
change gave it. Like every `Shape` they turn into a `Group` for ours and into JSON for Kafka's assignors.
"""

from dataclasses import replace

import numpy as np

from assignor.strategies.sticky.unequal.solver import assign_unequal
from tests.benchmarks.assignor_groups import Shape, buckets, windows

_TOPICS = 100


def changed(*, scale: int = 1) -> dict[str, Shape]:
    """5,000 partitions x 500 members over 100 topics, all of them `scale` times, by subscriptions and change."""
    size = {"partitions": 5_000 * scale, "topics": _TOPICS * scale, "members": 500 * scale}
    shapes = {
        "five buckets": buckets(**size),
        "windows of half of the topics": windows(**size, width=_TOPICS * scale // 2),
        "any 8 topics": any_topics(**size, width=8, seed=1),
    }
    changes = {"member joined": joined, "member left": left, "topic added": topic_added}
    return {
        f"{subscriptions}, {words}": change(shape)
        for subscriptions, shape in shapes.items()
        for words, change in changes.items()
    }


def fresh(*, scale: int = 1) -> dict[str, Shape]:
    """20,000 partitions x 200 members over 100 topics, all of them `scale` times, nothing owned."""
    size = {"partitions": 20_000 * scale, "topics": _TOPICS * scale, "members": 200 * scale}
    return {
        "windows of half of the topics": windows(**size, width=_TOPICS * scale // 2),
        "any 8 topics": any_topics(**size, width=8, seed=1),
    }


def any_topics(*, partitions: int, topics: int, members: int, width: int, seed: int) -> Shape:
    """Each member reads `width` topics of its own choice; the same seed gives the same group."""
    rng = np.random.default_rng(seed)
    counts = {f"t{t:04d}": partitions // topics for t in range(topics)}
    names = np.array(list(counts))
    chosen = [np.sort(rng.choice(topics, width, replace=False)) for _ in range(members)]
    return Shape(
        topics=counts,
        subscriptions=tuple(tuple(names[topic].tolist()) for topic in chosen),
        subscription_of=np.arange(members, dtype=np.int32),
        owner=np.full(sum(counts.values()), -1, np.int32),
    )


def joined(shape: Shape) -> Shape:
    """The group right after its last member joined."""
    return shape.owned_by(_settled(shape.first(shape.n_members - 1)).owner)


def left(shape: Shape) -> Shape:
    """The group right after its last member left."""
    return _settled(shape).first(shape.n_members - 1)


def topic_added(shape: Shape) -> Shape:
    """The group right after its last topic was created."""
    *older, newest = shape.topics
    new = shape.topics[newest]
    before = replace(
        shape,
        topics={name: shape.topics[name] for name in older},
        owner=shape.owner[: shape.n_partitions - new],
    )
    return shape.owned_by(np.concatenate((_settled(before).owner, np.full(new, -1, np.int32))))


def _settled(shape: Shape) -> Shape:
    return shape.owned_by(assign_unequal(shape.group()).member)
