"""Numbered records that flow to every partition of a topic until they are told to end."""

import threading

from confluent_kafka import Producer

RECORDS_PER_S = 80.0
"""In each partition."""


class Flow:
    """A thread that produces; the number of a record is its offset.

    Attributes:
        produced: Records in each partition so far.
    """

    def __init__(
        self, bootstrap: str, topic: str, *, partitions: int, records_per_s: float = RECORDS_PER_S
    ) -> None:
        # Idempotent: a record that is sent again while a broker dies would move the offsets behind it.
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 2, "enable.idempotence": True, "log_level": 0}
        )
        self._topic, self._partitions, self._records_per_s = topic, partitions, records_per_s
        self.produced = 0
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._produce, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Return when every record is in the broker."""
        self._enough.set()
        self._thread.join()

    def _produce(self) -> None:
        while not self._enough.wait(1 / self._records_per_s):
            for partition in range(self._partitions):
                self._producer.produce(self._topic, value=str(self.produced), partition=partition)
            self.produced += 1
            self._producer.poll(0)
        assert self._producer.flush(30) == 0
