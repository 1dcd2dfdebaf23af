"""The generation of a librdkafka consumer, which has no public call for it.

`consumer_group_metadata()` gives the bytes that librdkafka's rd_kafka_consumer_group_metadata_write makes::

    "CGMDv2:"  generation: int32, native byte order  group id  NUL  member id  NUL  instance id

That is not a promised format, so anything else is refused; a test compares it with what the broker has stored.
"""

import struct

from assignor.errors import DecodeError

_MAGIC = b"CGMDv2:"
_GENERATION = struct.Struct("=i")


def generation_of(metadata: bytes) -> int:
    """Generation of the classic group; -1 for a consumer that is in none.

    Raises:
        DecodeError: Another layout: this version of the client is not known.
    """
    if not metadata.startswith(_MAGIC):
        raise DecodeError(f"group metadata begins with {metadata[:7]!r}, not {_MAGIC!r}", position=0)
    body = metadata[len(_MAGIC) :]
    if len(body) < _GENERATION.size or body[_GENERATION.size :].count(b"\0") < 2:  # noqa: PLR2004  # two ids
        raise DecodeError("group metadata is cut off", position=len(metadata))
    (generation,) = _GENERATION.unpack_from(body)
    return int(generation)
