"""Reads all partitions of a topic without a group, up to the end or endlessly."""

import math
import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from pipeline.errors import BrokerUnavailableError
from pipeline.kafka.errors import error_of_call

READER = {
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "isolation.level": "read_committed",
}
"""Properties of a consumer for `assign_all` and `messages`."""

_POLL_S = 0.5


def assign_all(consumer: Consumer, topic: str, *, offset: int, timeout_s: float) -> int:
    """Assign every partition of the topic to the consumer, from this offset, and return how many there are.

    Raises:
        KafkaException: No broker answers.
        AccessRefusedError: This user may not read the topic.
        BrokerUnavailableError: The topic does not exist, or has no leader.
    """
    found = consumer.list_topics(topic, timeout=timeout_s).topics[topic]
    if found.error is not None:
        raise error_of_call(f"topic {topic} cannot be read", found.error)
    consumer.assign([TopicPartition(topic, number, offset) for number in sorted(found.partitions)])
    return len(found.partitions)


def messages(
    consumer: Consumer, *, topic: str, partitions: int, follow: bool, silence_s: float = math.inf
) -> Iterator[Message]:
    """Messages as they come; unless `follow`, until each of `partitions` partitions was at its end once.

    A broker that goes away is waited for. The consumer has the properties `READER`.

    Raises:
        AccessRefusedError: This user may not read it.
        BrokerUnavailableError: It cannot be read, or the broker says nothing for `silence_s`.
    """
    at_end: set[int | None] = set()
    received_at_s = time.monotonic()
    while follow or len(at_end) < partitions:
        message = consumer.poll(_POLL_S)
        error = None if message is None else message.error()
        if message is None or (error is not None and error.retriable()):
            if time.monotonic() - received_at_s > silence_s:
                raise BrokerUnavailableError(
                    f"topic {topic} could not be read to its end: no broker answered for {silence_s:g} s"
                )
            continue
        received_at_s = time.monotonic()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:
            at_end.add(message.partition())
        else:
            raise error_of_call(f"topic {topic} cannot be read", error)
