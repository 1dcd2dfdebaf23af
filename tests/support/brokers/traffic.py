"""Traffic under which the driver is killed: producers, groups that commit, rebalance, and are deleted, and talk."""

import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from types import TracebackType
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from assignor.protocol import acks, commands
from assignor.protocol.acks import Follows
from assignor.protocol.commands import Orders
from assignor.protocol.control import decode_key
from pipeline.publish.claim import is_claim
from tests.support.brokers.broker import admin_client, create_topics

CONTROL_TOPIC = "lagwise.assignments"
_TOPICS = {"orders": 6, "invoices": 4, "lagwise.acks": 1, "lagwise.commands": 1}


class _Reader(NamedTuple):
    """A member of a group."""

    group: str
    topic: str
    client: str
    pause_s: float
    """Between two records."""


_READERS = (
    # Member ids begin with the client id, and the range assignor goes by them: the slow one gets the busy partitions.
    _Reader("billing", "orders", "a-fast", 0.02),
    _Reader("billing", "orders", "z-slow", 0.2),
    _Reader("audit", "invoices", "a", 0.05),
    _Reader("audit", "orders", "b", 0.1),
)
_LATER_THAN_ALL = 1_000_000


class Traffic:
    """Threads that go on until the end of the `with` block."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.stop = threading.Event()
        self.threads: list[threading.Thread] = []
        self.passing = count()

    def __enter__(self) -> "Traffic":
        there = admin_client(self.bootstrap).list_topics(timeout=30).topics
        create_topics(self.bootstrap, {name: n for name, n in _TOPICS.items() if name not in there})
        self._start(self._produce)
        for reader in _READERS:
            self._start(lambda r=reader: self._consume(r, self.stop))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def disturb(self) -> None:
        """A member joins a group and leaves it; a group comes, commits, and is deleted; members and operators talk."""
        number = next(self.passing)
        talk(self.bootstrap, number)
        for group in ("billing", f"passing-{number}"):
            left = threading.Event()
            reader = _Reader(group, "orders", "passing", 0.01)
            thread = threading.Thread(target=self._consume, args=(reader, left, 20), daemon=True)
            thread.start()
            thread.join()
        if number % 2 == 0:
            # The client has to live as long as its futures.
            admin = admin_client(self.bootstrap)
            for future in admin.delete_consumer_groups([f"passing-{number}"]).values():
                future.result(timeout=60)

    def _start(self, work: Callable[[], object]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for number in count():
            if self.stop.wait(0.01):
                break
            for topic in ("orders", "invoices"):
                producer.produce(topic, value=str(number), partition=min(number % 11, _TOPICS[topic] - 1))
            producer.poll(0)
        producer.flush(10)

    def _consume(self, reader: _Reader, until: threading.Event, records: int = 0) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "client.id": reader.client,
                "group.id": reader.group,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 300,
                "session.timeout.ms": 6000,
                "log_level": 0,
            }
        )
        consumer.subscribe([reader.topic])
        read = 0
        while not until.is_set() and not (records and read >= records):
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                read += 1
                until.wait(reader.pause_s)
        consumer.close()


def talk(bootstrap: str, number: int) -> None:
    """One member more accepts a plan that is yet to come, and an operator changes the reason of an order."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    cluster, at_ms = str(producer.list_topics(timeout=30).cluster_id), time.time_ns() // 1_000_000
    ack = Follows(
        cluster=cluster,
        group="audit",
        generation=_LATER_THAN_ALL,
        epoch=_LATER_THAN_ALL,
        member=f"m-{number}",
        at_ms=at_ms,
    )
    orders = Orders(cluster=cluster, group="audit", pause_reason=f"reason {number}", at_ms=at_ms)
    producer.produce("lagwise.acks", key=acks.encode_key(ack), value=acks.encode(ack))
    producer.produce("lagwise.commands", key=commands.encode_key(orders), value=commands.encode(orders))
    assert producer.flush(30) == 0


def control_records(bootstrap: str) -> Iterator[tuple[str, int, str]]:
    """Group, epoch and value of every record on the control topic that is not part of an aborted transaction."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    reader.assign([TopicPartition(CONTROL_TOPIC, 0, OFFSET_BEGINNING)])
    try:
        while True:
            message = reader.poll(10)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF
                return
            if is_claim(message.key()):
                continue
            headers = dict(message.headers() or [])
            yield (
                decode_key(message.key() or b"")[1],
                int(headers["epoch"]),
                (message.value() or b"").decode(),
            )
    finally:
        reader.close()
