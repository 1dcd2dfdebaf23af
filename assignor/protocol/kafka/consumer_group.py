"""Groups of the consumer protocol of KIP-848 as the offsets topic holds them: the group's own record (type 3).

Source: `ConsumerGroupMetadataValue.json` of Kafka 4.x. The members are in records of other types.
"""

from assignor.errors import DecodeError
from assignor.protocol.kafka.reader import Reader
from assignor.protocol.kafka.writer import Writer

_VERSION = 0


def decode_group_epoch(value: bytes) -> int:
    """The group epoch in a value of version 0: it rises whenever members, subscriptions or topics change.

    Raises:
        DecodeError: Unknown version, truncated.
    """
    reader = Reader(value)
    version = reader.int16("version")
    if version != _VERSION:
        raise DecodeError(f"unknown version {version}", position=0)
    reader.compact = True
    epoch = reader.int32("group epoch")
    reader.tagged_fields()
    return epoch


def encode_group_epoch(epoch: int) -> bytes:
    """Value of version 0 without the hash of the topics."""
    writer = Writer()
    writer.int16(_VERSION)
    writer.compact = True
    writer.int32(epoch)
    writer.tagged_fields({})
    return writer.to_bytes()
