"""The acks topic, as a test reads it."""

import contextlib

from confluent_kafka import Consumer, TopicPartition

from assignor.errors import DecodeError
from assignor.protocol import acks
from assignor.protocol.acks import AnyAck


def read_acks(bootstrap: str, topic: str) -> list[AnyAck]:
    """Everything that is in the topic now, from its beginning, but what is damaged."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    try:
        end = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1]
        reader.assign([TopicPartition(topic, 0, 0)])
        messages = reader.consume(end, 10) if end else []
    finally:
        reader.close()
    read = []
    for message in messages:
        with contextlib.suppress(DecodeError):
            read.append(acks.decode(message.key() or b"", message.value() or b""))
    return read
