"""Rows of the tables and decoded rows, of which a test names only the columns it is about."""

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from pipeline.decode.rows import ARROW
from pipeline.source.decoded import Decoded, decoded_of
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import TABLES

NOW_MS = 1_700_000_000_000

_DEFAULTS: dict[str, Any] = {
    "cluster": "local",
    "group_id": "g",
    "group_type": "classic",
    "topic": "t",
    "partition": 0,
    "status": "OK",
    "assigned": False,
    "provisional": False,
    "confirmed": True,
    "offsets_partition": 3,
    "updated_at": datetime.fromtimestamp(NOW_MS / 1000 - 10, tz=timezone.utc),
    "batch_id": 0,
    "members": [],
    "samples": [],
    "recent_commits": [],
}


def at(seconds: float) -> datetime:
    """A time so many seconds after `NOW_MS`."""
    return datetime.fromtimestamp(NOW_MS / 1000 + seconds, tz=timezone.utc)


def decoded_arrow(*rows: dict[str, Any]) -> pa.Table:
    """Decoded rows; what is not named is null, but group, topic, partition and offsets partition."""
    named = {name: _DEFAULTS[name] for name in ("group_id", "topic", "partition", "offsets_partition")}
    full = [{name: {**named, **row}.get(name) for name in ARROW.names} for row in rows]
    return pa.Table.from_pylist(full, schema=ARROW)


def decoded_rows(*rows: dict[str, Any]) -> Decoded:
    """As `decoded_arrow`, as a batch has them."""
    return decoded_of(batch for row in rows for batch in decoded_arrow(row).to_batches())


def arrow(table: str, *rows: dict[str, Any]) -> pa.Table:
    """Rows of the table of this name, as the driver reads them."""
    (schema,) = (one.schema for one in TABLES if one.name == table)
    full = [{name: {**_DEFAULTS, **row}.get(name) for name in schema.fieldNames()} for row in rows]
    return pa.Table.from_pylist(full, schema=arrow_schema(schema))


def member(member_id: str, **fields: Any) -> dict[str, Any]:
    """A member of a stored group."""
    empty: dict[str, Any] = dict.fromkeys(
        ("group_instance_id", "client_id", "client_host", "rack", "owned_generation", "error")
    )
    return empty | {"member_id": member_id, "topics": ["t"], "owned": {}, "assigned": {}} | fields


def picked(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """The values of some columns, sorted."""
    return sorted((tuple(row) for row in frame.select(*columns).collect()), key=repr)


def shown(table: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    """As `picked`, of a table on the driver; structs are tuples."""
    rows = [tuple(_plain(row[name]) for name in columns) for row in table.select(columns).to_pylist()]
    return sorted(rows, key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(value.values())
    return [_plain(one) for one in value] if isinstance(value, list) else value
