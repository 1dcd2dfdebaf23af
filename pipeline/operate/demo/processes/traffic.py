"""The producer: `python -m` this module with `BOOTSTRAP SCENARIO` appends to all topics until its stdin closes."""

import sys
import time
from threading import Event

from confluent_kafka import Producer

from pipeline.operate.demo.processes.child import stop_with_parent
from pipeline.operate.demo.scenario import Scenario, Topic, phase_at

_ROUND_S = 0.1
_FLUSHED_WITHIN_S = 10.0


def main(bootstrap: str, scenario: str) -> None:
    """Produce at the rates of the scenario, from after its first burst."""
    stop = stop_with_parent()
    producer = _producer(bootstrap)
    _produce(producer, Scenario.from_json(scenario).topics, stop)
    producer.flush(1)


def burst(bootstrap: str, scenario: Scenario) -> None:
    """Produce the records with which the first phase of each topic begins."""
    producer = _producer(bootstrap)
    for topic in scenario.topics:
        send_due(producer, topic, [0.0] * topic.partitions, at_s=0.0, for_s=topic.burst_s)
        # The client takes 100,000 records at most.
        producer.flush(_FLUSHED_WITHIN_S)


def _producer(bootstrap: str) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "compression.type": "lz4"})


def _produce(producer: Producer, topics: tuple[Topic, ...], stop: Event) -> None:
    owed = {topic.name: [0.0] * topic.partitions for topic in topics}
    begun_s = time.monotonic()
    last_s = 0.0
    while not stop.wait(_ROUND_S):
        at_s = time.monotonic() - begun_s
        for topic in topics:
            for_s = worth_s(topic, last_s=last_s, at_s=at_s)
            owed[topic.name] = send_due(producer, topic, owed[topic.name], at_s=at_s, for_s=for_s)
            if for_s > topic.burst_s:
                producer.flush(_FLUSHED_WITHIN_S)
        producer.poll(0)
        last_s = at_s


def worth_s(topic: Topic, *, last_s: float, at_s: float) -> float:
    """Seconds of traffic due since `last_s`, with the burst if a phase has begun."""
    has_begun = phase_at(last_s) != phase_at(at_s)
    return at_s - last_s + (topic.burst_s if has_begun else 0.0)


def send_due(
    producer: Producer, topic: Topic, owed: list[float], *, at_s: float, for_s: float
) -> list[float]:
    """Send the records due in each partition; return the fractions of records still owed."""
    left: list[float] = []
    for number, (rate, before) in enumerate(zip(topic.rates(at_s), owed, strict=True)):
        due = before + rate * for_s
        for _ in range(int(due)):
            producer.produce(topic.name, value=b'{"amount":42}', partition=number)
        left.append(due % 1)
    return left


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
