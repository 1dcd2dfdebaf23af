"""The commands topic: standing orders, read to its end and written as a whole.

A record replaces all earlier orders for its group, so two operators who change the same group at once could undo each
other's orders. Therefore a change is one transaction under a shared id: its start makes the broker fence every earlier
uncommitted one, and it starts before the topic is read.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from assignor.errors import DecodeError
from assignor.protocol import commands
from assignor.protocol.commands import Orders
from pipeline import clock
from pipeline.config.model import Config
from pipeline.errors import BrokerUnavailableError
from pipeline.kafka.client import librdkafka_properties, unresolved
from pipeline.kafka.descriptions import describe_groups
from pipeline.kafka.errors import FENCED, Reason, client_with_reason, error_of_call, explained
from pipeline.kafka.tokens import ready
from pipeline.operate.poll import READER, messages

Change = Callable[[Orders], Orders]

# Records of one group must keep their order, even if the topic was created with more partitions.
_PARTITION = 0
# A killed command leaves its transaction open for this time, and readers wait behind it.
_TRANSACTION_MS = "10000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Content of the topic."""

    orders: Mapping[tuple[str, str], Orders]
    """Newest orders by cluster and group, without groups whose orders were deleted."""
    skipped: tuple[str, ...]
    """Records that are not orders, each as partition@offset and reason."""


class OrdersTopic:
    """The commands topic of one cluster; close it after use.

    Raises:
        AccessRefusedError: The cluster refuses this user, or the user lacks a right.
        BrokerUnavailableError: No broker answers, or there is no such topic.
    """

    def __init__(self, config: Config) -> None:
        self.topic = config.control.commands_topic
        self._timeout_s = config.source.request_timeout_s
        self._unresolved = unresolved(config)
        self._properties = librdkafka_properties(config, log_level="0")
        more = {"group.id": "lagwise-orders", **READER}
        self._consumer, reason = client_with_reason(Consumer, self._properties | more)
        try:
            cluster_id, self._partitions = self._look(reason)
        except BaseException:
            self.close()
            raise
        self.cluster = config.cluster.name or cluster_id
        """Name of the cluster as in the stream's configuration."""

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    def read(self) -> Found:
        """The present content of the topic, of all clusters.

        Raises:
            AccessRefusedError: This user may not read it.
            BrokerUnavailableError: It could not be read to its end.
        """
        self._consumer.assign(
            [TopicPartition(self.topic, number, OFFSET_BEGINNING) for number in self._partitions]
        )
        found = messages(
            self._consumer,
            topic=self.topic,
            partitions=len(self._partitions),
            follow=False,
            silence_s=self._timeout_s,
        )
        return collect(found)

    def order(self, group: str, change: Change, *, by: str) -> tuple[Orders, Found]:
        """As `change`, with the author and the time of the order.

        Raises:
            AccessRefusedError: This user may not read or write it.
            BrokerUnavailableError: They could not be read or written, or another operator wrote meanwhile.
        """
        return self.change(group, lambda held: replace(change(held), by=by, at_ms=clock.now_ms()))

    def change(self, group: str, change: Change) -> tuple[Orders, Found]:
        """Read, change and write the group's orders; return what was written, and what was read.

        Raises:
            AccessRefusedError: This user may not read or write it.
            BrokerUnavailableError: They could not be read or written, or another operator wrote meanwhile.
        """
        properties = self._properties | {
            "transactional.id": f"lagwise-{self.cluster}:orders",
            "transaction.timeout.ms": _TRANSACTION_MS,
            # librdkafka refuses a request that may outlive its transaction.
            "socket.timeout.ms": _TRANSACTION_MS,
            "message.timeout.ms": _TRANSACTION_MS,
        }
        with _broker_answers("the order was not written"):
            producer = Producer(ready(properties))
            producer.init_transactions(self._timeout_s)
        found = self.read()
        orders = change(found.orders.get((self.cluster, group)) or Orders(cluster=self.cluster, group=group))
        key, value = commands.encode_key(orders), commands.encode(orders)
        with _broker_answers("the order may not have been written (check with `lagwise orders`)"):
            producer.begin_transaction()
            producer.produce(self.topic, key=key, value=value, partition=_PARTITION)
            producer.commit_transaction(self._timeout_s)
        return orders, found

    def partitions_of(self, topic: str) -> int | None:
        """Number of partitions of `topic`; None if the cluster does not report it."""
        try:
            found = self._consumer.list_topics(topic, timeout=self._timeout_s).topics[topic]
        except KafkaException:
            return None
        return None if found.error is not None else len(found.partitions)

    def knows_group(self, group: str) -> bool:
        """Whether the cluster has the group; true if it does not report that."""
        # A listing omits groups that this user may not see, so only an answer about the group itself counts.
        found = describe_groups(self._unresolved, [group], timeout_s=self._timeout_s).get(group)
        if isinstance(found, KafkaException):
            return bool(found.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND)
        return found is None or found.state != "DEAD"

    def _look(self, reason: Reason) -> tuple[str, tuple[int, ...]]:
        with explained("the Kafka cluster cannot be used", reason):
            listed = self._consumer.list_topics(self.topic, timeout=self._timeout_s)
        found = listed.topics[self.topic]
        if found.error is not None and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise BrokerUnavailableError(
                f"topic {self.topic} does not exist yet; start the stream (`lagwise run`), which creates and reads it"
            )
        if found.error is not None:
            raise error_of_call(f"topic {self.topic} cannot be used", found.error)
        return str(listed.cluster_id), tuple(sorted(found.partitions))


@contextmanager
def orders_topic(config: Config) -> Iterator[OrdersTopic]:
    """An `OrdersTopic` for the body."""
    topic = OrdersTopic(config)
    try:
        yield topic
    finally:
        topic.close()


def collect(records: Iterator[Message]) -> Found:
    """The newest orders of each group in `records`, which are in the order of the topic.

    An unreadable record changes nothing: the orders before it stay, as in the stream.
    """
    orders: dict[tuple[str, str], Orders] = {}
    skipped: list[str] = []
    for record in records:
        value = record.value()
        try:
            newest = commands.decode(record.key() or b"", value)
        except DecodeError as error:
            skipped.append(f"{record.partition()}@{record.offset()}: {error}")
            continue
        if value is None:
            orders.pop((newest.cluster, newest.group), None)
        else:
            orders[newest.cluster, newest.group] = newest
    return Found(orders=orders, skipped=tuple(skipped))


@contextmanager
def _broker_answers(otherwise: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as failure:
        error = failure.args[0]
        if error.code() in FENCED:
            raise BrokerUnavailableError(
                "another operator gave an order at the same moment, and yours was not written; give it again"
            ) from failure
        raise error_of_call(otherwise, error) from failure
