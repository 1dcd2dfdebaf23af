"""Somebody who may write to the acks topic and to nothing else, in a world of followers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from assignor.clients.follower.state import PartitionKey
from assignor.protocol.acks import Accepted, AnyAck, Applied, Follows, Refused, Release, Taken, Void
from tests.support.followers.follow_plans import CLUSTER, GROUP
from tests.support.followers.follow_world import World

KINDS: tuple[type[AnyAck], ...] = (Follows, Accepted, Applied, Refused, Void, Release, Taken)


@dataclass(frozen=True, kw_only=True)
class Forgery:
    """A record in somebody else's name; members and partitions are counted through."""

    kind: type[AnyAck]
    member: int
    to: int
    partition: int
    hop: int
    offset: int
    epoch: int = 0
    """More than the epoch of the newest plan."""
    generation: int = 0
    """More than that of the group."""


@dataclass(frozen=True)
class Replay:
    """A record that is there, once more."""

    number: int


class Forged(World):
    """A world with such records in between."""

    forgeries: Sequence[Forgery | Replay] = ()
    """Each is written once, in their order."""
    undelivered = 0.005

    def __init__(self, random: Random, **options: Any) -> None:
        super().__init__(random, **options)
        self._left = list(reversed(self.forgeries))

    def act(self, node: Any, *, late: bool = True) -> None:
        if late and self._left and self.random.random() < 0.2:
            self._forge(self._left.pop())
        super().act(node, late=late)

    def _forge(self, forgery: Forgery | Replay) -> None:
        if isinstance(forgery, Replay):
            if self.acks:
                self.acks.append(self.acks[forgery.number % len(self.acks)])
            return
        if self.members and self.plan is not None:
            head = {
                "cluster": CLUSTER,
                "group": GROUP,
                "generation": self.generation,
                "epoch": self.plan.epoch,
            }
            self.acks.append(as_ack(forgery, head, sorted(self.members), self.places))


def as_ack(
    forgery: Forgery, newest: Mapping[str, Any], names: Sequence[str], places: Sequence[PartitionKey]
) -> AnyAck:
    """The record.

    Args:
        forgery: Of which.
        newest: Cluster, group, generation of the group and epoch of the newest plan.
        names: Member ids.
        places: Partitions of the group.
    """
    topic, partition = places[forgery.partition % len(places)]
    head = {
        **newest,
        "generation": max(0, newest["generation"] + forgery.generation),
        "epoch": max(1, newest["epoch"] + forgery.epoch),
        "member": names[forgery.member % len(names)],
        "at_ms": 0,
    }
    place = {"topic": topic, "partition": partition, "hop": forgery.hop}
    if forgery.kind is Release:
        to = names[forgery.to % len(names)]
        return Release(**head, **place, to=to, offset=forgery.offset)
    if forgery.kind is Taken:
        return Taken(**head, **place)
    return forgery.kind(**head, **({"why": "forged"} if forgery.kind in (Refused, Void) else {}))


def at_random(random: Random, number: int, kinds: Sequence[type[AnyAck]] = KINDS) -> list[Forgery | Replay]:
    """Such records."""
    return [
        Replay(random.randrange(1000))
        if random.random() < 0.3
        else Forgery(
            kind=random.choice([*kinds, Release, Release]),
            member=random.randrange(5),
            to=random.randrange(5),
            partition=random.randrange(6),
            hop=random.randrange(1, 5),
            offset=random.randrange(40),
            epoch=random.choice([0, 0, 0, -1, 1]),
            generation=random.choice([0, 0, 0, 0, -1, 1]),
        )
        for _ in range(number)
    ]
