"""Traffic under which the driver is killed: producers, groups that commit, rebalance, and are deleted."""

import threading
from collections.abc import Iterator
from itertools import count
from types import TracebackType

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from assignor.protocol.control import decode_key
from tests.support.broker import admin_client, create_topics

CONTROL_TOPIC = "lagwise.assignments"
_TOPICS = {"orders": 6, "invoices": 4}
_GROUPS = (
    ("billing", "orders", 0.02),
    ("billing", "orders", 0.2),
    ("audit", "invoices", 0.05),
    ("audit", "orders", 0.1),
)


class Traffic:
    """Threads that go on until the end of the `with` block."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.stop = threading.Event()
        self.threads: list[threading.Thread] = []
        self.passing = count()

    def __enter__(self) -> "Traffic":
        create_topics(self.bootstrap, _TOPICS)
        self._start(self._produce)
        for group, topic, pause_s in _GROUPS:
            self._start(lambda g=group, t=topic, s=pause_s: self._consume(g, t, s, self.stop))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def disturb(self) -> None:
        """A member joins a group and leaves it, and a group comes, commits, and is deleted with its offsets."""
        number = next(self.passing)
        for group in ("billing", f"passing-{number}"):
            left = threading.Event()
            thread = threading.Thread(
                target=self._consume, args=(group, "orders", 0.01, left, 20), daemon=True
            )
            thread.start()
            thread.join()
        if number % 2 == 0:
            # The client has to live as long as its futures.
            admin = admin_client(self.bootstrap)
            for future in admin.delete_consumer_groups([f"passing-{number}"]).values():
                future.result(timeout=60)

    def _start(self, work: "threading._Target") -> None:  # type: ignore[name-defined]
        thread = threading.Thread(target=work, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for number in count():
            if self.stop.wait(0.01):
                break
            for topic, partitions in _TOPICS.items():
                producer.produce(topic, value=str(number), partition=min(number % 11, partitions - 1))
            producer.poll(0)
        producer.flush(10)

    def _consume(
        self, group: str, topic: str, pause_s: float, until: threading.Event, records: int = 0
    ) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 300,
                "session.timeout.ms": 6000,
                "log_level": 0,
            }
        )
        consumer.subscribe([topic])
        read = 0
        while not until.is_set() and not (records and read >= records):
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                read += 1
                until.wait(pause_s)
        consumer.close()


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
            headers = dict(message.headers() or [])
            yield (
                decode_key(message.key() or b"")[1],
                int(headers["epoch"]),
                (message.value() or b"").decode(),
            )
    finally:
        reader.close()
