"""The acks topic, as a test reads it."""

from confluent_kafka import Consumer, TopicPartition

from assignor.protocol import acks
from assignor.protocol.acks import AnyAck


def read_acks(bootstrap: str, topic: str) -> list[AnyAck]:
    """Everything that is in the topic now, from its beginning."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    try:
        end = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1]
        reader.assign([TopicPartition(topic, 0, 0)])
        messages = reader.consume(end, 10) if end else []
    finally:
        reader.close()
    return [acks.decode(message.key() or b"", message.value() or b"") for message in messages]
