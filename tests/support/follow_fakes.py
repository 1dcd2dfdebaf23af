"""Stand-ins for a confluent-kafka consumer and the topics of a follower."""

import struct
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from assignor.protocol.acks import AnyAck
from assignor.protocol.control import ControlRecord
from tests.support.follow_plans import CLUSTER


class FakeMessage:
    def __init__(self, partition: int, offset: int) -> None:
        self._partition, self._offset = partition, offset

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def error(self) -> None:
        return None


class FakeConsumer:
    """Calls back as Kafka would, and keeps what it was told."""

    def __init__(self, _config: Any) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.stored: dict[int, int] = {}
        """Commits of the group."""
        self.fetched: list[FakeMessage] = []
        self.refuse_commits = False
        self.generation = 1
        self._listeners: dict[str, Callable[..., None]] = {}
        self._next: list[tuple[str, Sequence[int]]] = []

    def subscribe(self, _topics: list[str], **listeners: Callable[..., None]) -> None:
        self.calls.append(("subscribe", None))
        self._listeners = listeners

    def will(self, what: str, partitions: Sequence[int] = ()) -> None:
        """Call back "on_assign", "on_revoke" or "on_lost" at the next poll."""
        self._next.append((what, partitions))

    def consume(self, _number: int, _timeout_s: float) -> list[FakeMessage]:
        while self._next:
            what, partitions = self._next.pop(0)
            self._listeners[what](self, [TopicPartition("t", p) for p in partitions])
        fetched, self.fetched = self.fetched, []
        return fetched

    def poll(self, _timeout_s: float) -> None:
        self.consume(1, 0)

    def memberid(self) -> str:
        return "a"

    def consumer_group_metadata(self) -> bytes:
        return b"CGMDv2:" + struct.pack("=i", self.generation) + b"g\0a\0\1"

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("assign", {p.partition: p.offset for p in partitions}))

    def unassign(self) -> None:
        self.calls.append(("unassign", None))

    def unsubscribe(self) -> None:
        self.calls.append(("unsubscribe", None))
        self.will("on_revoke")

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        if self.refuse_commits:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_MEMBER_ID))
        kind = "commit_async" if asynchronous else "commit"
        self.calls.append((kind, {p.partition: p.offset for p in offsets}))
        return offsets

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout > 0
        return [TopicPartition("t", p.partition, self.stored.get(p.partition, -1001)) for p in partitions]

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout > 0
        return [TopicPartition("t", p.partition, {-2: 5, -1: 95}[p.offset]) for p in partitions]

    def close(self) -> None:
        self.calls.append(("close", None))


class FakeTopics:
    def __init__(self, _config: Any, **_topics: Any) -> None:
        self.cluster = CLUSTER
        self.incoming: list[AnyAck] = []
        self.offered: ControlRecord | None = None
        self.written: list[AnyAck] = []
        self.closed = 0

    def read(self) -> tuple[AnyAck, ...]:
        incoming, self.incoming = tuple(self.incoming), []
        return incoming

    def plan(self) -> ControlRecord | None:
        return self.offered

    def write(self, ack: AnyAck) -> None:
        self.written.append(ack)
        self.incoming.append(ack)

    def close(self) -> None:
        self.closed += 1
