"""Producers and groups that go on whatever happens to their brokers."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count

from confluent_kafka import Consumer, KafkaException, Producer

_STOPPED_WITHIN_S = 60.0
# Member ids begin with the client id: the slow member is the second one for every assignor that goes by them.
_PAUSE_S_BY_CLIENT = {"a-fast": 0.02, "z-slow": 0.3}


class SteadyGroups:
    """Threads that go on until the end of the `with` block: one producer, and two members of each group."""

    def __init__(
        self,
        bootstrap: str,
        *,
        topics: Mapping[str, int],
        groups: Mapping[str, Sequence[str]],
        records_per_s: float,
    ) -> None:
        """Prepare.

        Args:
            bootstrap: Of the brokers.
            topics: Number of partitions of each one that is written to.
            groups: What each subscribes to.
            records_per_s: Into each partition.
        """
        self._bootstrap = bootstrap
        self._topics = dict(topics)
        self._every_s = 1 / records_per_s
        self._stop = threading.Event()
        members = [(group, of, client) for group, of in groups.items() for client in _PAUSE_S_BY_CLIENT]
        self._threads = [
            threading.Thread(target=self._produce, daemon=True),
            *(threading.Thread(target=self._consume, args=one, daemon=True) for one in members),
        ]

    def __enter__(self) -> "SteadyGroups":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(_STOPPED_WITHIN_S)

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 5, "log_level": 0})
        for number in count():
            if self._stop.wait(self._every_s):
                break
            for topic, partitions in self._topics.items():
                for partition in range(partitions):
                    producer.produce(topic, value=str(number), partition=partition)
            producer.poll(0)
        producer.flush(10)

    def _consume(self, group: str, topics: Sequence[str], client: str) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "client.id": client,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 300,
                "session.timeout.ms": 6000,
                "log_level": 0,
            }
        )
        consumer.subscribe(list(topics))
        while not self._stop.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                self._stop.wait(_PAUSE_S_BY_CLIENT[client])
        # Its last commit may find no coordinator.
        with suppress(KafkaException):
            consumer.close()
