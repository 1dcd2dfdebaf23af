"""Decode: records of KIP-848 groups, one by one, the newest of each key; they come with joins, leaves and assignments.

A group is the newest record of each of its keys, so each leaves the worker as it is. If one cannot be read, the row
says why: what it replaced is no longer so, and what is so now is unknown.
"""

from collections.abc import Callable
from typing import Any

from assignor.errors import DecodeError
from assignor.protocol.kafka.consumer_group import DECODERS, decode_record_key
from assignor.protocol.kafka.offsets import MAX_TIMESTAMP_MS

Row = dict[str, Any]


def consumer_group_row(record: Row) -> tuple[Row, str | None]:
    """The row of a record of `DECODERS`, of kind 'group_record' or 'group_record_tombstone', and why it is unreadable.

    Args:
        record: With key, value, partition, offset, and timestamp in microseconds.

    Raises:
        DecodeError: The key cannot be read.
    """
    key, value = decode_record_key(record["key"]), record["value"]
    error = None if value is None else _why_unreadable(DECODERS[key.record_type], value)
    written_at_ms = record["timestamp"] // 1000 if record["timestamp"] is not None else -1
    row = {
        "row_kind": "group_record_tombstone" if value is None else "group_record",
        "group_id": key.group_id,
        "record_type": int(key.record_type),
        "record_key": key.name,
        "offsets_partition": record["partition"],
        "position": record["offset"],
        "written_at_ms": written_at_ms if 0 <= written_at_ms <= MAX_TIMESTAMP_MS else None,
        # Rubbish may be large, and quarantine has it.
        "value": value if error is None else None,
        "error": error,
    }
    return row, error


def _why_unreadable(decode: Callable[[bytes], Any], value: bytes) -> str | None:
    try:
        decode(value)
    except DecodeError as error:
        return str(error)
    return None
