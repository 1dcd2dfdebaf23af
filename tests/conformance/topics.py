"""lagwise's topics as the judge reads them, damage and all."""

import contextlib
from collections.abc import Iterator, Sequence

from confluent_kafka import Consumer, Message, TopicPartition

from assignor.errors import DecodeError
from assignor.protocol import acks
from assignor.protocol.acks import AnyAck


def messages(bootstrap: str, topic: str) -> Sequence[Message]:
    """Everything in the one partition of a topic, from its beginning."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "judge", "enable.auto.commit": False})
    try:
        end = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1]
        reader.assign([TopicPartition(topic, 0, 0)])
        return reader.consume(end, 10) if end else []
    finally:
        reader.close()


def timed_acks(bootstrap: str, topic: str) -> Iterator[tuple[int, AnyAck]]:
    """Acknowledgements that can be read, each with the time in ms at which its producer was given it."""
    for message in messages(bootstrap, topic):
        with contextlib.suppress(DecodeError):
            yield message.timestamp()[1], acks.decode(message.key() or b"", message.value() or b"")
