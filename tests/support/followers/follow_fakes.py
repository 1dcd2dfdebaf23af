"""Stand-ins for a confluent-kafka consumer and the topics of a follower."""

import struct
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from assignor.protocol.acks import AnyAck
from assignor.protocol.control import ControlRecord


class FakeMessage(Message):
    def __init__(self, partition: int, offset: int, error: KafkaError | None = None) -> None:
        super().__init__(topic="t", partition=partition, offset=offset, error=error)


class FakeConsumer:
    """Calls back as Kafka would, and keeps what it was told."""

    def __init__(self, config: Any) -> None:
        self._on_commit = config["on_commit"]
        self._on_error = config.get("error_cb")
        self.problem: KafkaError | None = None
        """Told to the user's callback at the next poll."""
        self._unanswered: list[tuple[KafkaError | None, list[TopicPartition]]] = []
        self.answers_commits = True
        """Asynchronous ones, at the next poll."""
        self.silent = False
        """Whether the coordinator does not answer."""
        self.calls: list[tuple[str, Any]] = []
        self.stored: dict[int, int] = {}
        """Commits of the group."""
        self.metadata: dict[int, str] = {}
        """Of those commits."""
        self.sent_metadata: dict[int, str] = {}
        """Of what this member has committed last."""
        self.fetched: list[FakeMessage] = []
        self.refuse_commits = False
        self.metadata_at_most = 1_000_000
        self.refuse_seeks = False
        self.generation = 1
        self.forgets_positions = True
        """By an assign() or a seek(); librdkafka does, some time later."""
        self._position: dict[int, int] = {}
        self._listeners: dict[str, Callable[..., None]] = {}
        self._next: list[tuple[str, Sequence[int]]] = []
        self._is_closing = self._is_closed = False

    def subscribe(self, topics: list[str], **listeners: Callable[..., None]) -> None:
        if not all(topics):
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG))
        self.calls.append(("subscribe", topics))
        self._listeners = listeners

    def will(self, what: str, partitions: Sequence[int] = ()) -> None:
        """Call back "on_assign", "on_revoke" or "on_lost" at the next poll."""
        self._next.append((what, partitions))

    def consume(self, number: int, _timeout_s: float) -> list[FakeMessage]:
        self._call_back()
        while self._unanswered and self.answers_commits:
            self._on_commit(*self._unanswered.pop(0))
        fetched, self.fetched = self.fetched[:number], self.fetched[number:]
        self._position |= {m.partition(): m.offset() + 1 for m in fetched if m.error() is None}
        return fetched

    def _call_back(self) -> None:
        problem, self.problem = self.problem, None
        if problem and self._on_error:
            self._on_error(problem)
        while self._next:
            what, partitions = self._next.pop(0)
            self._listeners[what](self, [TopicPartition("t", p) for p in partitions])

    def poll(self, timeout_s: float) -> FakeMessage | None:
        messages = self.consume(1, timeout_s)
        return messages[0] if messages else None

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition("t", p.partition, self._position.get(p.partition, -1001)) for p in partitions]

    def memberid(self) -> str:
        return "a"

    def consumer_group_metadata(self) -> bytes:
        if self._is_closing:
            raise RuntimeError("Consumer group metadata not available")
        return b"CGMDv2:" + struct.pack("=i", self.generation) + b"g\0a\0\1"

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("assign", {p.partition: p.offset for p in partitions}))
        if self.forgets_positions:
            self._position.clear()

    def unassign(self) -> None:
        if self._is_closed:
            raise RuntimeError("Consumer closed")
        self.calls.append(("unassign", None))

    def unsubscribe(self) -> None:
        self.calls.append(("unsubscribe", None))
        self.will("on_revoke")

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        refusal = KafkaError(KafkaError.UNKNOWN_MEMBER_ID) if self.refuse_commits else None
        refusal = KafkaError(KafkaError._TRANSPORT) if self.silent else refusal
        if asynchronous:
            self._unanswered.append((refusal, [self._answer(place) for place in offsets]))
        elif refusal:
            raise KafkaException(refusal)
        self.sent_metadata |= {p.partition: p.metadata or "" for p in offsets}
        kind = "commit_async" if asynchronous else "commit"
        self.calls.append((kind, {p.partition: p.offset for p in offsets}))
        return offsets

    def _answer(self, place: TopicPartition) -> Any:
        if len(place.metadata or "") <= self.metadata_at_most:
            return place
        error = KafkaError(KafkaError.OFFSET_METADATA_TOO_LARGE)
        return SimpleNamespace(topic="t", partition=place.partition, offset=place.offset, error=error)

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout > 0
        if self.silent:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return [
            TopicPartition("t", n, self.stored.get(n, -1001), self.metadata.get(n, ""))
            for n in (place.partition for place in partitions)
        ]

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout > 0
        return [TopicPartition("t", p.partition, {-2: 5, -1: 95}[p.offset]) for p in partitions]

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("pause", sorted(p.partition for p in partitions)))

    def resume(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("resume", sorted(p.partition for p in partitions)))

    def seek(self, partition: TopicPartition) -> None:
        if self.refuse_seeks:
            raise KafkaException(KafkaError(KafkaError._STATE))
        self.calls.append(("seek", {partition.partition: partition.offset}))
        if self.forgets_positions:
            self._position.pop(partition.partition, None)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        self.calls.append(("credentials", (username, password)))

    def close(self) -> None:
        """Callbacks that wait are called, as librdkafka does."""
        self._is_closing = True
        self._call_back()
        self._is_closed = True
        self.calls.append(("close", None))


class FakeTopics:
    def __init__(self, _config: Any, **_topics: Any) -> None:
        self.outages = 0
        self.undelivered: list[AnyAck] = []
        self.incoming: list[AnyAck] = []
        self.offered: ControlRecord | None = None
        self.written: list[AnyAck] = []
        self.closed = 0

    def look(self) -> None:
        pass

    def take_undelivered(self) -> AnyAck | None:
        return self.undelivered.pop(0) if self.undelivered else None

    def take_acks(self) -> tuple[AnyAck, ...]:
        incoming, self.incoming = tuple(self.incoming), []
        return incoming

    def plan(self) -> ControlRecord | None:
        return self.offered

    def write(self, ack: AnyAck) -> None:
        self.written.append(ack)
        self.incoming.append(ack)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        self.credentials = (username, password)

    def close(self) -> None:
        self.closed += 1
