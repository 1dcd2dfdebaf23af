"""Plain consumers of confluent-kafka, eager as librdkafka makes them or of KIP-848, with the face of a follower."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

from assignor.clients.confluent.group import generation_of
from tests.support.followers.follow_log import note

Listener = Callable[[list[TopicPartition]], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainState:
    """Where the member stands, as far as a plain consumer knows."""

    member: str = ""
    generation: int = -1
    base: frozenset[tuple[str, int]] = frozenset()
    settled: bool = False


class Plain:
    """It knows nothing of plans: arguments that only a follower has are taken and not used."""

    def __init__(
        self,
        config: Mapping[str, Any],
        topics: Sequence[str],
        *,
        on_gained: Listener,
        on_revoked: Listener,
        on_lost: Listener,
        **_: Any,
    ) -> None:
        self.state = PlainState()
        self._on_gained, self._on_revoked, self._on_lost = on_gained, on_revoked, on_lost
        self._topics = list(topics)
        self._consumer = Consumer(dict(config))
        self._subscribe()

    def __enter__(self) -> "Plain":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # LeaveGroup goes out before the client's own callback: a commit there comes too late.
        self._revoked(self._consumer, self._consumer.assignment())
        self._consumer.close()

    def poll(self, timeout: float) -> Message | None:
        """As the consumer's."""
        return self._consumer.poll(timeout)

    def commit(self, asynchronous: bool = True) -> object:
        """All that `poll` has returned."""
        return self._consumer.commit(asynchronous=asynchronous)  # type: ignore[call-overload]  # wants a literal

    def _subscribe(self) -> None:
        self._consumer.subscribe(
            self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.state = PlainState(
            member=consumer.memberid() or "",
            generation=generation_of(consumer.consumer_group_metadata()),
            base=_places(partitions),
            settled=True,
        )
        self._on_gained(partitions)

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self.state.settled:
            self.state = PlainState()
            self._on_revoked(partitions)

    def _lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.state = PlainState()
        self._on_lost(partitions)


class New(Plain):
    """One of KIP-848, whose partitions come and go one by one."""

    def poll(self, timeout: float) -> Message | None:
        message = super().poll(timeout)
        if message is not None and message.error() is not None:
            note("turned away", problem=message.error().str())
        return message

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.state = PlainState(
            member=consumer.memberid() or "",
            generation=generation_of(consumer.consumer_group_metadata()),
            base=self.state.base | _places(partitions),
            settled=True,
        )
        self._on_gained(partitions)

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._on_revoked(partitions)
        self.state = replace(self.state, base=self.state.base - _places(partitions))

    def _lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.state = PlainState()
        self._on_lost(partitions)


def _places(partitions: list[TopicPartition]) -> frozenset[tuple[str, int]]:
    return frozenset((partition.topic, partition.partition) for partition in partitions)
