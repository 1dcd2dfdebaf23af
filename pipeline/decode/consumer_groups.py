"""Decode: records of KIP-848 groups, one at a time, the newest of each key; joins, leaves and assignments write them.

A group consists of the newest record of each of its keys, so each record leaves the worker as it is. If a record cannot
be read, its row gives the reason: the record that it replaced no longer holds, and the present state is unknown.
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
