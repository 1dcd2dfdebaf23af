"""The producer: `python -m pipeline.demo.traffic BOOTSTRAP` appends to all topics until its stdin closes."""

import sys
import time
from threading import Event

from confluent_kafka import Producer

from pipeline.demo.child import stop_with_parent
from pipeline.demo.scene import TOPICS, Topic

_ROUND_S = 0.1


def main(bootstrap: str) -> None:
    """Produce at the rates of the scene."""
    stop = stop_with_parent()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "compression.type": "lz4"})
    _produce(producer, stop)
    producer.flush(1)


def _produce(producer: Producer, stop: Event) -> None:
    owed = {topic.name: [0.0] * topic.partitions for topic in TOPICS}
    begun = last = time.monotonic()
    while not stop.wait(_ROUND_S):
        now = time.monotonic()
        for topic in TOPICS:
            owed[topic.name] = send_due(producer, topic, owed[topic.name], at_s=now - begun, for_s=now - last)
        producer.poll(0)
        last = now


def send_due(
    producer: Producer, topic: Topic, owed: list[float], *, at_s: float, for_s: float
) -> list[float]:
    """Send what has come due in each partition, and answer the fractions of records that are still owed."""
    left: list[float] = []
    for number, (rate, before) in enumerate(zip(topic.rates(at_s), owed, strict=True)):
        due = before + rate * for_s
        for _ in range(int(due)):
            producer.produce(topic.name, value=b'{"amount":42}', partition=number)
        left.append(due % 1)
    return left


if __name__ == "__main__":
    main(sys.argv[1])
