"""Messages of an assigned consumer, up to the end or for ever."""

from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, Message

from pipeline.errors import BrokerUnavailableError

_POLL_S = 0.5


def messages(consumer: Consumer, *, partitions: int, follow: bool) -> Iterator[Message]:
    """Messages as they come; unless `follow`, until each of `partitions` partitions was at its end once.

    A broker that goes away is waited for. The consumer must have `enable.partition.eof`.

    Raises:
        BrokerUnavailableError: The broker refuses, which waiting does not mend.
    """
    at_end: set[int | None] = set()
    while follow or len(at_end) < partitions:
        message = consumer.poll(_POLL_S)
        if message is None:
            continue
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  # confluent_kafka's name for it
            at_end.add(message.partition())
        elif not error.retriable():
            raise BrokerUnavailableError(f"the control topic cannot be read: {error.str()}")
