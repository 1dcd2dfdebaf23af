"""Partitions that plans have moved, according to the acknowledgements of following members.

Members that hand over within a generation acknowledge each partition. Members whose leader assigns the plan acknowledge
the plan as a whole, which has the moves. Members of KIP-848 groups acknowledge nothing: the group's own records, which
are in the tables, have the new owners.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from confluent_kafka import Consumer, TopicPartition

from assignor.errors import DecodeError
from assignor.protocol import acks, control
from assignor.protocol.acks import AnyAck, Applied, Release, Taken
from assignor.protocol.control import ControlRecord
from pipeline import clock
from pipeline.config.model import ControlConfig
from pipeline.operate.demo.snapshot import Owners, Snapshot
from pipeline.planning.life.pokes import is_for_broker

_AT_ONCE = 500
_BROKERS_SUFFIX = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""A broker derives a member id from the client id and a UUID."""

_HandOver: TypeAlias = tuple[str, int, str, int, int]
"""Group, generation, topic, partition, and the number of its hand-over in this generation."""


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
    """When the new owner took it, by its own clock. For a KIP-848 group: time of the first batch that saw it there."""


class Moves:
    """Pairs releases with takes, and applied plans with their moves; repeated acknowledgements count once."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, int], ControlRecord] = {}
        self._released: dict[_HandOver, str] = {}
        self._completed: set[_HandOver] = set()
        self._hands_over: set[str] = set()
        self._applied: dict[tuple[str, int, str], Applied] = {}
        self._counted: set[tuple[str, int, str]] = set()
        self._by_broker: dict[str, ControlRecord] = {}
        self._made: set[tuple[str, int, str, int]] = set()

    def feed(self, acks: Iterable[AnyAck], plans: Iterable[ControlRecord] = ()) -> tuple[Move, ...]:
        """Moves that these acknowledgements or plans complete."""
        for plan in plans:
            if is_for_broker(plan):
                self._by_broker[plan.group] = plan
            else:
                self._plans[plan.group, plan.epoch] = plan
        handed_over = [move for ack in acks if (move := self._move(ack))]
        return (*handed_over, *self._explained())

    def saw(self, snapshot: Snapshot) -> tuple[Move, ...]:
        """Moves of the newest plans of KIP-848 groups whose partitions are first seen at their new owners."""
        if snapshot.seen_at is None:
            return ()
        plans = self._by_broker.values()
        return tuple(
            move for plan in plans for move in self._arrived(plan, snapshot.owners, snapshot.seen_at)
        )

    def _arrived(self, plan: ControlRecord, owners: Owners, seen_at: datetime) -> Iterator[Move]:
        # A KIP-848 member makes its id without its client id.
        clients = {member_id: member.client for member_id, member in plan.members.items()}
        for move in plan.moves:
            owner = owners.get((plan.group, move.topic, move.partition))
            key = (plan.group, plan.epoch, move.topic, move.partition)
            if owner is None or owner != move.to_member or move.from_member is None or key in self._made:
                continue
            self._made.add(key)
            yield Move(
                group_id=plan.group,
                epoch=plan.epoch,
                topic=move.topic,
                partition=move.partition,
                from_client=clients.get(move.from_member, move.from_member),
                to_client=clients.get(owner, owner),
                at=seen_at,
            )

    def _explained(self) -> Iterator[Move]:
        """Moves to members that have applied plans, in groups whose members do not hand over."""
        for key, ack in self._applied.items():
            plan = self._plans.get((ack.group, ack.epoch))
            if plan is None or key in self._counted or ack.group in self._hands_over:
                continue
            self._counted.add(key)
            for move in plan.moves:
                if move.to_member == ack.member and move.from_member is not None:
                    yield _of(ack, move.topic, move.partition, move.from_member)

    def _move(self, ack: AnyAck) -> Move | None:
        if isinstance(ack, Applied):
            self._applied.setdefault((ack.group, ack.epoch, ack.member), ack)
        if not isinstance(ack, Release | Taken):
            return None
        self._hands_over.add(ack.group)
        hand_over = (ack.group, ack.generation, ack.topic, ack.partition, ack.hop)
        if isinstance(ack, Release):
            self._released.setdefault(hand_over, ack.member)
            return None
        released_by = self._released.get(hand_over)
        if released_by is None or hand_over in self._completed:
            return None
        self._completed.add(hand_over)
        return _of(ack, ack.topic, ack.partition, released_by)


def _of(ack: Taken | Applied, topic: str, partition: int, from_member: str) -> Move:
    return Move(
        group_id=ack.group,
        epoch=ack.epoch,
        topic=topic,
        partition=partition,
        from_client=client_of(from_member),
        to_client=client_of(ack.member),
        at=clock.at(ack.at_ms),
    )


def client_of(member_id: str) -> str:
    """The client id within a member id."""
    return _BROKERS_SUFFIX.sub("", member_id)


class MovesReader:
    """Reads the acks topic and the control topic of the demo from their beginnings, without blocking."""

    def __init__(self, bootstrap: str, topics: ControlConfig) -> None:
        """Connect; the topics must exist, with one partition each."""
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "lagwise-demo"})
        self._acks_topic = topics.acks_topic
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in (topics.acks_topic, topics.topic)])
        self._moves = Moves()

    def read(self) -> tuple[Move, ...]:
        """The moves completed since the previous call."""
        received, plans = list[AnyAck](), list[ControlRecord]()
        for message in self._consumer.consume(_AT_ONCE, 0):
            key, value = message.key(), message.value()
            # Unreadable records go to the stream's quarantine; the view continues.
            if message.error() is None and key is not None and value is not None:
                with suppress(DecodeError):
                    if message.topic() == self._acks_topic:
                        received.append(acks.decode(key, value))
                    else:
                        plans.append(control.decode(value))
        return self._moves.feed(received, plans)

    def saw(self, snapshot: Snapshot) -> tuple[Move, ...]:
        """Moves of KIP-848 groups that were made by this snapshot, and not by earlier ones."""
        return self._moves.saw(snapshot)

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()
