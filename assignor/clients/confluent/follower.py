"""A consumer of confluent-kafka whose group takes over the plans of the control topic.

    with Follower({"bootstrap.servers": "…", "group.id": "billing", "enable.auto.commit": False}, ["invoices"]) as f:
        while True:
            message = f.poll(1.0)
            if message is None or message.error():
                continue
            process(message)
            f.commit(message, asynchronous=False)

librdkafka takes no assignors from outside, so the group keeps the assignor it has, and its members move
partitions among themselves until Kafka's next rebalance. Where a partition goes on is what the user has
committed: `on_revoked` is the last chance to commit what is done.

One rule for threads: all calls of a follower come from one thread.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from assignor.clients.confluent import config as confluent_config
from assignor.clients.confluent.config import Config
from assignor.clients.confluent.group import generation_of
from assignor.clients.confluent.offsets import start_offsets
from assignor.clients.confluent.topics import FollowTopics
from assignor.clients.follower.rules import advance
from assignor.clients.follower.state import (
    AcksSeen,
    Action,
    Assign,
    Assigned,
    Change,
    Commit,
    Committed,
    Event,
    FollowerState,
    Instant,
    Lost,
    PartitionKey,
    Phase,
    PlanSeen,
    Rejoin,
    Revoked,
    Settings,
    Tell,
    Tick,
    Unassign,
    Write,
)
from assignor.errors import AssignorError

log = logging.getLogger(__name__)

Listener = Callable[[list[TopicPartition]], object]

_LOOK_EVERY_S = 0.05
# Looking costs more than a record does, so a user who polls for each does not pay for it each time.
_LOOK_AT_MOST_EVERY_S = 0.01
_REVOKED_WITHIN_S = 5.0


class NotOwnedError(AssignorError):
    """A commit of partitions that this member does not read, or no longer; it was not sent.

    Kafka would take it from any member of the group, over the head of the one who reads them.

    Attributes:
        places: Topic and partition of each; empty when the member is out of its group altogether.
    """

    def __init__(self, places: Iterable[PartitionKey] = ()) -> None:
        self.places = tuple(sorted(places))
        super().__init__(self.places)

    def __str__(self) -> str:
        if not self.places:
            return (
                "this member is in no generation of its group; it can commit after poll() has joined (again)"
            )
        return f"not read by this member, so not committed: {', '.join(f'{t}-{p}' for t, p in self.places)}"


class TransactionsUnsupportedError(AssignorError):
    """Offsets in a producer's transaction are not supported by a follower."""


class Follower:
    """A member of a group that follows the control topic; a context manager."""

    def __init__(
        self,
        config: Config,
        topics: Sequence[str],
        *,
        on_gained: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
        control_topic: str = "lagwise.assignments",
        acks_topic: str = "lagwise.acks",
        cluster: str | None = None,
        take_timeout_s: float = 10.0,
        despite_migration: bool = False,
    ) -> None:
        """Subscribe; the group is joined by `poll`.

        Args:
            config: Of a `confluent_kafka.Consumer`.
            topics: To subscribe to.
            on_gained: Told which partitions are read from now on.
            on_revoked: Told which partitions are given up when it returns; it may commit.
            on_lost: Told which partitions are gone, when others may read them already.
            control_topic: `control.topic` of the stream.
            acks_topic: `control.acks_topic` of the stream.
            cluster: Name of the cluster as the stream has it; by default Kafka's id of the cluster, as there.
            take_timeout_s: A partition given away and not taken within this time makes the group rebalance.
            despite_migration: Follow also where the brokers would migrate the group online (Kafka 4's default), or
                nobody knows. Then one member with `group.protocol=consumer` is enough for a partition to be read
                twice, and for a commit to be set back. Only where none can ever join.

        Raises:
            FollowerConfigError: A property with which following is not safe, or a topic that it cannot use.
            KafkaException: The cluster does not answer.
        """
        confluent_config.check(config)
        self._starts_earliest = confluent_config.starts_earliest(config)
        self._listeners = {Change.GAINED: on_gained, Change.REVOKED: on_revoked, Change.LOST: on_lost}
        self._topics = list(topics)
        self._positions: dict[PartitionKey, int] = {}
        self._finished: dict[PartitionKey, int] = {}
        self._todo: deque[Action] = deque()
        self._looked_s = 0.0
        self._closed = False
        self._side = FollowTopics(config, control_topic=control_topic, acks_topic=acks_topic, cluster=cluster)
        static = confluent_config.is_static(config)
        if static:
            log.warning("a static member stays where Kafka assigns it; to follow, unset group.instance.id")
        self._state = FollowerState(
            settings=Settings(
                cluster=self._side.cluster,
                group=str(config["group.id"]),
                static=static,
                take_timeout_s=take_timeout_s,
                despite_migration=despite_migration,
            )
        )
        self._consumer = Consumer(confluent_config.consumer_config(config))
        self._subscribe()

    def __enter__(self) -> "Follower":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            # What is in hand was not finished, and a listener that commits would say it was.
            self._listeners = dict.fromkeys(Change)
        self.close()

    @property
    def state(self) -> FollowerState:
        """Where this member stands; for logs and tests."""
        return self._state

    def poll(self, timeout: float = -1) -> Message | None:
        """One message or error, or None after `timeout` seconds; negative waits for ever.

        All that was returned before counts as finished by `commit()` without arguments.
        """
        messages = self.consume(1, timeout)
        return messages[0] if messages else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Up to that many messages; returns as soon as there are any, or after `timeout` seconds."""
        deadline = time.monotonic() + timeout if timeout >= 0 else None
        while True:
            self._step()
            left_s = _LOOK_EVERY_S if deadline is None else deadline - time.monotonic()
            messages = self._consumer.consume(num_messages, max(0.0, min(left_s, _LOOK_EVERY_S)))
            # What a callback of the client has asked for must not wait for the user's next call.
            self._drain()
            delivered = [message for message in messages if self._is_read(message)]
            for message in delivered:
                self._advance_position(message)
            if delivered or (deadline is not None and time.monotonic() >= deadline):
                return delivered

    def commit(
        self,
        message: Message | None = None,
        offsets: Sequence[TopicPartition] | None = None,
        asynchronous: bool = True,
    ) -> list[TopicPartition] | None:
        """Commit one message, given offsets, or by default all that `poll` and `consume` have returned.

        Returns:
            As `confluent_kafka.Consumer.commit`: partitions with their errors if synchronous, else None.

        Raises:
            NotOwnedError: A partition that this member does not read, or a membership that was lost.
            KafkaException: The commit failed.
        """
        wanted = self._wanted(message, offsets)
        if self._state.generation < 0:
            raise NotOwnedError
        foreign = wanted.keys() - self._positions.keys()
        if foreign:
            raise NotOwnedError(foreign)
        self._finished.update(wanted)
        if not wanted:
            return None if asynchronous else []
        if asynchronous:
            self._consumer.commit(offsets=_with_offsets(wanted), asynchronous=True)
            return None
        return self._consumer.commit(offsets=_with_offsets(wanted), asynchronous=False)

    def assignment(self) -> list[TopicPartition]:
        """What this member reads now."""
        return [TopicPartition(*key) for key in sorted(self._positions)]

    def consumer_group_metadata(self) -> object:
        """Nothing: a producer's transaction cannot carry this member's offsets.

        Raises:
            TransactionsUnsupportedError: Always.
        """
        raise TransactionsUnsupportedError(
            "a hand-over commits outside the producer's transaction, so records of an open one would be processed "
            "twice; use a plain confluent_kafka.Consumer where offsets go into transactions"
        )

    def close(self) -> None:
        """Leave the group. `on_revoked` is told before, and may commit. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        # LeaveGroup goes out before the client's own callback: a commit there comes too late.
        self._in_callback(Revoked())
        self._consumer.close()
        self._side.close()

    # Events in.

    def _step(self) -> None:
        self._drain()
        now_s = time.monotonic()
        if now_s - self._looked_s < _LOOK_AT_MOST_EVERY_S:
            return
        self._looked_s = now_s
        acks = self._side.read()
        if acks:
            self._feed(AcksSeen(acks=acks))
        plan = self._side.plan()
        if plan is not self._state.offered:
            self._feed(PlanSeen(plan=plan))
        self._feed(Tick())

    def _subscribe(self) -> None:
        self._consumer.subscribe(
            self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        assigned = Assigned(
            member=consumer.memberid() or "",
            generation=generation_of(consumer.consumer_group_metadata()),
            places=frozenset((partition.topic, partition.partition) for partition in partitions),
        )
        self._in_callback(assigned)

    def _on_revoke(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        # What Kafka lists is the base; what is held may be more, or less.
        self._in_callback(Revoked())

    def _on_lost(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self._in_callback(Lost())

    def _in_callback(self, event: Event) -> None:
        """Carry out what comes of it up to the next commit, which waits until the callback has returned."""
        self._refuse_waiting_commit()
        self._advance(event)
        while self._todo and not isinstance(self._todo[0], Commit | Rejoin):
            self._carry_out_next()

    def _refuse_waiting_commit(self) -> None:
        """One call of the client may run several callbacks: a commit that an earlier one left is of a generation past.

        Sent after this callback it would wait for the next generation, be accepted there, and prove nothing.
        """
        for action in self._todo:
            if isinstance(action, Commit):
                self._todo.remove(action)
                self._advance(Committed(accepted=False, offsets={}))
                return

    def _feed(self, event: Event) -> None:
        self._advance(event)
        self._drain()

    def _drain(self) -> None:
        while self._todo:
            self._carry_out_next()

    def _advance(self, event: Event) -> None:
        now = Instant(monotonic_s=time.monotonic(), wall_ms=time.time_ns() // 1_000_000)
        self._state, actions = advance(self._state, event, now)
        self._todo.extend(actions)

    # Actions out.

    def _carry_out_next(self) -> None:
        action = self._todo[0]
        if isinstance(action, Assign):
            # Fails when the coordinator does not answer, and is then tried again.
            self._assign(action)
        self._todo.popleft()
        match action:
            case Unassign():
                self._consumer.unassign()
                self._positions, self._finished = {}, {}
            case Commit():
                self._commit_handover(action)
            case Write():
                self._side.write(action.ack)
            case Tell():
                self._tell(action)
            case Rejoin():
                self._rejoin()

    def _assign(self, action: Assign) -> None:
        new = action.places - self._positions.keys()
        known = {key: offset for key, offset in action.offsets.items() if key in new}
        asked = start_offsets(self._consumer, new - known.keys(), earliest=self._starts_earliest)
        starts = {**known, **asked}
        # An assign() without offsets would rewind what stays to its last commit.
        positions = {key: self._positions.get(key, starts.get(key, 0)) for key in action.places}
        self._consumer.assign(_with_offsets(positions))
        self._positions = positions
        self._finished.update(starts)

    def _commit_handover(self, action: Commit) -> None:
        offsets = {
            key: self._finished[key] if offset is None else offset for key, offset in action.offsets.items()
        }
        try:
            committed = self._consumer.commit(offsets=_with_offsets(offsets), asynchronous=False)
            accepted = all(partition.error is None for partition in committed)
        except KafkaException as error:
            log.info("the commit of a hand-over was refused", extra={"problem": str(error)})
            accepted = False
        self._advance(Committed(accepted=accepted, offsets=offsets))

    def _tell(self, action: Tell) -> None:
        listener = self._listeners[action.change]
        if listener is not None and action.places:
            listener([TopicPartition(*key) for key in sorted(action.places)])

    def _rejoin(self) -> None:
        self._consumer.unsubscribe()
        deadline = time.monotonic() + _REVOKED_WITHIN_S
        while self._state.phase is Phase.REJOIN and time.monotonic() < deadline:
            self._consumer.poll(_LOOK_EVERY_S)
        self._in_callback(Revoked())
        self._subscribe()

    def _wanted(
        self, message: Message | None, offsets: Sequence[TopicPartition] | None
    ) -> dict[PartitionKey, int]:
        if message is not None:
            return {_key_of(message): int(message.offset() or 0) + 1}
        if offsets is not None:
            return {(offset.topic, offset.partition): offset.offset for offset in offsets}
        return dict(self._positions)

    def _is_read(self, message: Message) -> bool:
        return message.error() is not None or _key_of(message) in self._positions

    def _advance_position(self, message: Message) -> None:
        if message.error() is None:
            self._positions[_key_of(message)] = int(message.offset() or 0) + 1


def _key_of(message: Message) -> PartitionKey:
    return str(message.topic()), int(message.partition() or 0)


def _with_offsets(offsets: Mapping[PartitionKey, int]) -> list[TopicPartition]:
    return [TopicPartition(*key, offsets[key]) for key in sorted(offsets)]
