"""Partitions that changed hands, according to the acknowledgements of the members that follow."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from confluent_kafka import Consumer, TopicPartition

from assignor.errors import DecodeError
from assignor.protocol import acks
from assignor.protocol.acks import AnyAck, Release, Taken
from pipeline import clock

_AT_ONCE = 500
_BROKERS_SUFFIX = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""A broker makes a member id from the client id and a UUID."""

_HandOver: TypeAlias = tuple[str, int, str, int, int]
"""Group, generation, topic, partition, and which hand-over of it in this generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A partition that one member handed over to another."""

    group_id: str
    epoch: int
    topic: str
    partition: int
    from_client: str
    """Client id."""
    to_client: str
    """Client id."""
    at: datetime
    """When it was taken, by the clock of its new owner."""


class Moves:
    """Pairs releases with takes; each hand-over counts once, however often it is acknowledged."""

    def __init__(self) -> None:
        self._released: dict[_HandOver, str] = {}
        self._completed: set[_HandOver] = set()

    def feed(self, acks: Iterable[AnyAck]) -> tuple[Move, ...]:
        """The hand-overs that these acknowledgements complete, in their order."""
        return tuple(move for ack in acks if (move := self._move(ack)))

    def _move(self, ack: AnyAck) -> Move | None:
        if not isinstance(ack, Release | Taken):
            return None
        hand_over = (ack.group, ack.generation, ack.topic, ack.partition, ack.hop)
        if isinstance(ack, Release):
            self._released.setdefault(hand_over, ack.member)
            return None
        released_by = self._released.get(hand_over)
        if released_by is None or hand_over in self._completed:
            return None
        self._completed.add(hand_over)
        return Move(
            group_id=ack.group,
            epoch=ack.epoch,
            topic=ack.topic,
            partition=ack.partition,
            from_client=client_of(released_by),
            to_client=client_of(ack.member),
            at=clock.at(ack.at_ms),
        )


def client_of(member_id: str) -> str:
    """The client id within a member id."""
    return _BROKERS_SUFFIX.sub("", member_id)


class MovesReader:
    """Reads the acks topic from its beginning, without waiting."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        """Connect; the topic is there."""
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "lagwise-demo"})
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self._moves = Moves()

    def read(self) -> tuple[Move, ...]:
        """The hand-overs completed since the call before."""
        received = []
        for message in self._consumer.consume(_AT_ONCE, 0):
            key, value = message.key(), message.value()
            # What cannot be read is for the stream's quarantine; the view goes on.
            if message.error() is None and key is not None and value is not None:
                try:
                    received.append(acks.decode(key, value))
                except DecodeError:
                    continue
        return self._moves.feed(received)

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()
