"""Traffic that does not change its shape: steady producers, three consumers of unequal speed, one group without any."""

import threading
from types import TracebackType

from confluent_kafka import Consumer, Producer

from tests.support.brokers.broker import create_topics

_TOPIC = "soak"
_PARTITIONS = 30
_PAUSES_S = (0.002, 0.01, 0.05)
"""Of each consumer after every record: the last one falls behind, and Kafka's retention ends its lag."""
_RECORDS_A_TICK = 30
_TICK_S = 0.2


class Traffic:
    """Runs in threads from entering to leaving."""

    def __init__(self, bootstrap: str) -> None:
        """Nothing is contacted before entering."""
        self._bootstrap = bootstrap
        self._over = threading.Event()
        works = [self._produce, *(lambda pause_s=pause_s: self._consume(pause_s) for pause_s in _PAUSES_S)]
        self._threads = [threading.Thread(target=work, daemon=True) for work in works]

    def __enter__(self) -> "Traffic":
        create_topics(self._bootstrap, {_TOPIC: _PARTITIONS})
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 20, "log_level": 0})
        number = 0
        while not self._over.wait(_TICK_S):
            for _ in range(_RECORDS_A_TICK):
                number += 1
                # Squares leave two thirds of the partitions to others: work is uneven.
                producer.produce(_TOPIC, value=b"x" * 100, partition=number * number % _PARTITIONS)
            producer.poll(0)
        producer.flush(10)

    def _consume(self, pause_s: float) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "soak-group",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 2000,
                "partition.assignment.strategy": "cooperative-sticky",
                # A consumer that falls behind fetches ahead up to 64 MB, in an hour: it would look like a leak of the driver.
                "queued.max.messages.kbytes": 64,
                "fetch.queue.backoff.ms": 100,
                "log_level": 0,
            }
        )
        consumer.subscribe([_TOPIC])
        while not self._over.is_set():
            if consumer.poll(0.5) is not None:
                self._over.wait(pause_s)
        consumer.close()
