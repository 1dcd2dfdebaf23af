"""A consumer of confluent-kafka whose group follows the plans of the control topic.

    with Follower({"bootstrap.servers": "…", "group.id": "billing", "enable.auto.commit": False}, ["invoices"]) as f:
        while True:
            message = f.poll(1.0)
            if message is None or message.error():
                continue
            process(message)
            f.commit(message, asynchronous=False)

librdkafka accepts no external assignors, so the group keeps its assignor, and its members move partitions among
themselves until Kafka's next rebalance. The new owner of a partition resumes from the user's commit: `on_revoked` is
the last chance to commit finished records. While lagwise's topics cannot be used, a follower is a plain consumer.

One rule for threads: all calls of a follower come from one thread.
"""

import logging
import math
from collections.abc import Callable, Sequence
from types import TracebackType

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import ClusterMetadata

from assignor.clients.bounded import within
from assignor.clients.clock import clock_s
from assignor.clients.confluent import config as confluent_config
from assignor.clients.confluent.commits import as_partitions, without_mark
from assignor.clients.confluent.config import Config
from assignor.clients.confluent.delivered import key_of
from assignor.clients.confluent.errors import NotOwnedError, TransactionsUnsupportedError
from assignor.clients.confluent.group import generation_of
from assignor.clients.confluent.reading import Reading
from assignor.clients.confluent.steering import Listener, Steering
from assignor.clients.confluent.topics import FollowTopics
from assignor.clients.follower.state import Change, FollowerState, Settings

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.05
# The client hands out the answer to a commit only when it is asked for messages.
_ANSWER_SOON_S = 0.005
_FOREVER_S = -1.0
# librdkafka marks codes of its own with an underscore.
_NO_OFFSET, _INVALID_ARG = KafkaError._NO_OFFSET, KafkaError._INVALID_ARG


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
        take_timeout_s: float | None = None,
        despite_migration: bool = False,
    ) -> None:
        """Subscribe; `poll` joins the group. The control and acks topics need not exist, now or later.

        Args:
            config: Configuration of a `confluent_kafka.Consumer`, including callbacks.
            topics: Topics to subscribe to.
            on_gained: Called with the partitions that are read from now on.
            on_revoked: Called with the partitions that are given up when it returns; it may commit.
            on_lost: Called with the partitions that are lost; other members may already read them.
            control_topic: `control.topic` of the stream.
            acks_topic: `control.acks_topic` of the stream.
            cluster: Name of the cluster, as in the stream; by default Kafka's id of the cluster, as there.
            take_timeout_s: A partition given away and not taken within this time makes the group rebalance; by default
                10 s more than `max.poll.interval.ms`.
            despite_migration: Follow even if the brokers migrate the group online (Kafka 4's default), or if that is
                unknown. Then a single member with `group.protocol=consumer` can cause a partition to be read twice,
                and a commit to be set back. Use it only if no such member can ever join.

        Raises:
            FollowerConfigError: Following is not safe with a property.
            DecodeError: This version of librdkafka encodes the generation in an unknown way.
            KafkaException: The client rejects a property.
        """
        confluent_config.check(config)
        self._left = self._ended = False
        self._stores_by_hand = confluent_config.stores_by_hand(config)
        self._close_within_s = confluent_config.close_within_s(config)
        self._on_commit: Callable[..., object] | None = config.get("on_commit")
        called = confluent_config.callbacks_in(lambda: self._reading.commits.in_callback(), config)  # noqa: PLW0108 - made below
        called["on_commit"] = self._committed
        self._consumer = Consumer(confluent_config.consumer_config({**config, **called}))
        generation_of(self._consumer.consumer_group_metadata())
        self._reading = Reading(self._consumer, starts_earliest=confluent_config.starts_earliest(config))
        self._delivered = self._reading.delivered
        self._side = FollowTopics(config, control_topic=control_topic, acks_topic=acks_topic, cluster=cluster)
        if take_timeout_s is None:
            take_timeout_s = confluent_config.take_timeout_s(config)
        self._steering = Steering(
            _settings(config, take_timeout_s=take_timeout_s, despite_migration=despite_migration),
            topics=topics,
            reading=self._reading,
            side=self._side,
            listeners={Change.GAINED: on_gained, Change.REVOKED: on_revoked, Change.LOST: on_lost},
        )
        self._steering.subscribe()

    def __enter__(self) -> "Follower":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            # What is in hand was not finished, and a listener that commits would say it was.
            self._steering.listeners = dict.fromkeys(Change)
        self.close()

    @property
    def state(self) -> FollowerState:
        """Return the state of this member, for logs and tests."""
        return self._steering.state

    def poll(self, timeout: float = _FOREVER_S) -> Message | None:
        """Return one message or error, or None after `timeout` seconds; a negative timeout waits forever.

        `commit()` without arguments counts everything returned before as finished.
        """
        # Users call it for each record, and here a call of `_end` for nothing would be a tenth of what following costs.
        delivered = self._delivered
        if clock_s() < delivered.calm_until_s:
            try:
                message = self._consumer.poll(0)
            finally:
                if self._left:
                    self._end()
            # Unless a callback of the client ran meanwhile.
            if message is not None and (delivered.calm_until_s or delivered.taken([message])):
                return message
        return next(iter(self.consume(1, timeout)), None)

    def consume(self, num_messages: int = 1, timeout: float = _FOREVER_S) -> list[Message]:
        """Up to that many messages; returns as soon as there are any, or after `timeout` seconds."""
        now_s = clock_s()
        # As in `poll`.
        if now_s < self._delivered.calm_until_s:
            at_most_s = timeout if 0 <= timeout < _LOOK_EVERY_S else _LOOK_EVERY_S
            try:
                messages = self._consumer.consume(num_messages, at_most_s)
            finally:
                self._end()
            delivered = self._delivered.taken(messages)
            if delivered:
                return delivered
        deadline = now_s + timeout if timeout >= 0 else math.inf
        while True:
            delivered = self._consume_for_a_while(num_messages, deadline)
            if delivered or clock_s() >= deadline:
                return delivered

    def commit(
        self,
        message: Message | None = None,
        offsets: Sequence[TopicPartition] | None = None,
        asynchronous: bool = True,
    ) -> list[TopicPartition] | None:
        """Commit one message, given offsets, or by default all that `poll` and `consume` have returned.

        With `enable.auto.offset.store=False` the default is the offsets of `store_offsets` since the last commit.

        After a hand-over, the new owner resumes from the offset that Kafka accepted; a failed commit changes nothing.

        Returns:
            As in `confluent_kafka.Consumer.commit`: partitions with their errors if synchronous, otherwise None.

        Raises:
            NotOwnedError: For partitions that this member does not read, after the others were committed; or a
                membership that was lost, and nothing is.
            KafkaException: The commit failed.
        """
        if self.state.generation < 0:
            raise NotOwnedError
        wanted = _given(message, offsets)
        if wanted is None and self._stores_by_hand:
            wanted = self._reading.uncommitted()
            if not wanted:
                raise KafkaException(
                    KafkaError(_NO_OFFSET, "Commit failed: nothing was stored since the last commit")
                )
        elif wanted is None:
            wanted = as_partitions(self._reading.positions)
        return self._reading.commit(wanted, asynchronous=asynchronous)

    def store_offsets(
        self, message: Message | None = None, offsets: Sequence[TopicPartition] | None = None
    ) -> None:
        """Choose what the next `commit()` without arguments commits: the offset after one message, or these offsets.

        A partition that is given up loses its stored offset, unless it is committed by then.

        Raises:
            NotOwnedError: For partitions that this member does not read, after the others were stored.
            KafkaException: `enable.auto.offset.store` is not False, or nothing is given.
        """
        if not self._stores_by_hand:
            raise KafkaException(
                KafkaError(
                    _INVALID_ARG,
                    "store_offsets: poll() stores offsets; set enable.auto.offset.store to False",
                )
            )
        wanted = _given(message, offsets)
        if wanted is None:
            raise KafkaException(KafkaError(_INVALID_ARG, "store_offsets: pass a message or offsets"))
        self._reading.store(wanted)

    def subscribe(
        self,
        topics: Sequence[str],
        *,
        on_gained: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
    ) -> None:
        """Read these topics instead; the group rebalances, and `on_revoked` gets the partitions read until then.

        A given listener replaces the former one at once; the others stay.

        Raises:
            KafkaException: The client refuses the topics.
        """
        given = {Change.GAINED: on_gained, Change.REVOKED: on_revoked, Change.LOST: on_lost}
        self._steering.subscribe_to(topics, {change: one for change, one in given.items() if one is not None})

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Set the credentials of the consumer and of lagwise's topics; open connections stay as they are."""
        self._consumer.set_sasl_credentials(username, password)
        self._side.set_sasl_credentials(username, password)

    def seek(self, partition: TopicPartition) -> None:
        """Continue at the offset of that partition, which may be `OFFSET_BEGINNING`, `OFFSET_END` or `OFFSET_STORED`.

        A hand-over ignores it: the new owner resumes from the group's commit.

        Raises:
            NotOwnedError: This member does not read it.
            KafkaException: Nobody says where a logical offset is.
        """
        self._reading.seek(partition)

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        """Read on without these, until `resume` or until they are given up; plans move them like any others.

        Raises:
            NotOwnedError: For partitions that this member does not read, after the others were paused.
        """
        self._reading.pause(partitions)

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these again.

        Raises:
            NotOwnedError: For partitions that this member does not read, after the others were resumed.
        """
        self._reading.resume(partitions)

    def position(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Next offset that is delivered, of each; `OFFSET_INVALID` for one that this member does not read."""
        return self._reading.position(partitions)

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that this member reads now."""
        return [TopicPartition(*key) for key in sorted(self._reading.places)]

    def committed(
        self, partitions: Sequence[TopicPartition], timeout: float = _FOREVER_S
    ) -> list[TopicPartition]:
        """Return the group's committed offsets, like the consumer's, but without the marks of hand-overs."""
        found = self._consumer.committed(list(partitions), timeout=timeout)
        return [without_mark(place) for place in found]

    def offsets_for_times(
        self, partitions: Sequence[TopicPartition], timeout: float = _FOREVER_S
    ) -> list[TopicPartition]:
        """As of the consumer."""
        return self._consumer.offsets_for_times(list(partitions), timeout=timeout)

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = _FOREVER_S, cached: bool = False
    ) -> tuple[int, int] | None:
        """Return the first offset and the one after the last record, or None without an answer in time."""
        return self._consumer.get_watermark_offsets(partition, timeout=timeout, cached=cached)

    def list_topics(self, topic: str | None = None, timeout: float = _FOREVER_S) -> ClusterMetadata:
        """As of the consumer."""
        asked = {} if topic is None else {"topic": topic}
        found: ClusterMetadata = self._consumer.list_topics(**asked, timeout=timeout)
        return found

    def memberid(self) -> str | None:
        """Return the member id that Kafka has given this member, by which plans name it."""
        return self._consumer.memberid()

    def consumer_group_metadata(self) -> object:
        """Nothing: a producer's transaction cannot carry this member's offsets.

        Raises:
            TransactionsUnsupportedError: Always.
        """
        raise TransactionsUnsupportedError(
            "a hand-over commits outside the producer's transaction, so records of an open transaction would be "
            "processed twice; use a plain confluent_kafka.Consumer if offsets are committed in transactions"
        )

    def close(self) -> None:
        """Leave the group, after `on_revoked`, which may commit. A second call does nothing.

        In a listener or another callback it gives up the partitions; the call that has called it leaves the group.

        If the client does not close, as librdkafka may do if no broker answers, it is abandoned with its thread after
        its session timeout and 15 s more.
        """
        if self._reading.commits.is_leaving:
            self._end()
            return
        self._reading.commits.is_leaving = True
        try:
            # LeaveGroup goes out before the client's own callback: a commit there comes too late.
            self._steering.leave()
        finally:
            # A listener that raises must not leave behind a member that reads nothing and holds its partitions.
            self._left = True
            self._end()

    def _consume_for_a_while(self, num_messages: int, deadline: float) -> list[Message]:
        """What arrives before the topics have to be looked at again."""
        try:
            self._steering.step()
            at_most_s = _ANSWER_SOON_S if self._steering.is_waiting else _LOOK_EVERY_S
            messages = self._consumer.consume(num_messages, max(0.0, min(deadline - clock_s(), at_most_s)))
        finally:
            self._end()
        delivered = self._delivered.taken(messages)
        if not delivered:
            # What a callback of the client has asked for must not wait for the user's next call. With messages in hand
            # it does: an assign() would read them again, and a listener that raises would lose them.
            self._steering.drain()
        return delivered

    def _end(self) -> None:
        """Close the clients, once, of a member that has left.

        While the consumer calls a listener, its close() would wait for the listener.
        """
        if not self._left or self._ended or self._reading.commits.is_in_callback:
            return
        self._ended = True
        try:
            self._close_consumer()
        finally:
            self._side.close()

    def _close_consumer(self) -> None:
        try:
            within(0.0 if self._reading.commits.is_stuck else self._close_within_s, self._consumer.close)
        except TimeoutError:
            log.warning(
                "the Kafka client did not close because none of its brokers answers, so it is abandoned; nothing is "
                "lost: the next owners of its partitions resume from the committed offsets"
            )

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        commits = self._reading.commits
        if commits.answered(error, partitions) and self._on_commit is not None:
            with commits.in_callback():
                self._on_commit(error, partitions)


def _given(message: Message | None, offsets: Sequence[TopicPartition] | None) -> list[TopicPartition] | None:
    """Offsets behind what the user is done with, where he says so."""
    if message is not None:
        return as_partitions({key_of(message): int(message.offset() or 0) + 1})
    return None if offsets is None else list(offsets)


def _settings(config: Config, *, take_timeout_s: float, despite_migration: bool) -> Settings:
    static = confluent_config.is_static(config)
    if static:
        log.warning(
            "a static member keeps Kafka's assignment and follows no plan; to follow plans, unset group.instance.id"
        )
    return Settings(
        group=str(config["group.id"]),
        static=static,
        take_timeout_s=take_timeout_s,
        despite_migration=despite_migration,
    )
