"""Decode: control messages (acknowledgements and orders), one record at a time; there are few.

Acknowledgements come from the followers of a plan, orders from `lagwise pause` and its like.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from assignor.errors import DecodeError
from assignor.protocol import acks, commands
from pipeline.clock import at
from pipeline.decode.filters import ControlTopics
from pipeline.decode.raw_records import raw_records
from pipeline.tables.columns import ACK_FIELDS, ORDER_FIELDS
from pipeline.tables.schemas import ACKS

Row: TypeAlias = dict[str, Any]

# Arrow does not take a struct that is null and whose fields must not be.
_ACK_KEY = [StructField(name, ACKS[name].dataType) for name in ("kind", "id")]
CONTROL_COLUMNS = (
    StructField("ack", StructType([*_ACK_KEY, *ACK_FIELDS])),
    StructField("orders", StructType(list(ORDER_FIELDS))),
)
"""Filled in rows of kind 'ack' and 'orders'; null, or null but for the key, where a record took it back."""

_MOST_BYTES_OF_ACK = 16_384
"""Followers write a thousand at most, plus their names; and every follower may write them."""
_MOST_BYTES_BESIDES_WHY = 4_096
"""All distinct ones of a batch reach the driver, 50,000 at most."""
_MOST_OF_WHY = 500
"""Characters of a reason that are kept."""


def control_rows(
    records: pa.RecordBatch, topics: ControlTopics, wants_group: Callable[[str], bool]
) -> tuple[list[Row], list[Row]]:
    """Rows of kind 'ack' and 'orders', and rows of kind 'bad'; what is about other clusters is left out."""
    good: list[Row] = []
    bad: list[Row] = []
    acks_topics = topics.every_acks
    for record in raw_records(records).to_pylist():
        is_ack = record["topic"] in acks_topics
        as_bad = record | {"row_kind": "bad", "kind": "ack" if is_ack else "orders"}
        size = len(record["key"] or b"") + len(record["value"] or b"")
        if is_ack and size > _MOST_BYTES_OF_ACK:
            bad.append(
                as_bad
                | {"reason": f"an acknowledgement of {size:,} bytes: at most {_MOST_BYTES_OF_ACK:,} count"}
            )
            continue
        try:
            cluster, row = (_ack if is_ack else _orders)(record["key"] or b"", record["value"])
        except DecodeError as error:
            bad.append(as_bad | {"reason": str(error)})
            continue
        group_id = row["group_id"]
        if cluster != topics.cluster or not wants_group(group_id):
            continue
        if is_ack and record["topic"] != (wanted := topics.acks_of(group_id)):
            # The right to write to one tenant's topic is no right to speak for another tenant's groups.
            why = f"acknowledgement of group {group_id!r} on topic {record['topic']}: only those on {wanted} count"
            bad.append(as_bad | {"reason": f"{why} (control.acks_topics)"})
            continue
        good.append(row | {"position": record["offset"]})
    return good, bad


# To the job a plan is accepted, whatever the members of one version or another tell each other by it.
_KINDS = {"follows": "accepted"}


def _ack(key: bytes, value: bytes | None) -> tuple[str, Row]:
    about = acks.decode_key(key)
    ack = None if value is None else acks.decode(key, value)
    why = ack.why if isinstance(ack, acks.Refused | acks.Void) else ""
    besides = len(key) + len(value or b"") - len(why.encode())
    if besides > _MOST_BYTES_BESIDES_WHY:
        most = f"at most {_MOST_BYTES_BESIDES_WHY:,} count"
        raise DecodeError(f"an acknowledgement of {besides:,} bytes besides its reason: {most}", position=0)
    kind = _KINDS.get(about.kind, about.kind)
    row: Row = {"row_kind": "ack", "group_id": about.group, "ack": {"kind": kind, "id": about.id}}
    if ack is None:
        return about.cluster, row
    fields = {
        "generation": ack.generation,
        "epoch": ack.epoch,
        "member_id": ack.member,
        "acked_at": at(ack.at_ms),
        **{column: getattr(ack, name, None) for column, name in _BESIDES.items()},
        "why": why[:_MOST_OF_WHY] or None,
    }
    return about.cluster, row | {"ack": row["ack"] | fields}


_BESIDES = {
    "to_member_id": "to",
    "topic": "topic",
    "partition": "partition",
    "hop": "hop",
    "offset": "offset",
}


def _orders(key: bytes, value: bytes | None) -> tuple[str, Row]:
    orders = commands.decode(key, value)
    row: Row = {"row_kind": "orders", "group_id": orders.group, "orders": None}
    if value is None:
        return orders.cluster, row
    fields = {
        "paused": orders.paused,
        "pause_reason": orders.pause_reason,
        "pinned": [(topic, commands.format_pin(numbers)) for topic, numbers in orders.pinned.items()],
        "triggered_at": None if orders.triggered_at_ms is None else at(orders.triggered_at_ms),
        "resumed_at": None if orders.resumed_at_ms is None else at(orders.resumed_at_ms),
        **_approval(orders.approval),
        "ordered_by": orders.by,
        "ordered_at": at(orders.at_ms),
    }
    return orders.cluster, row | {"orders": fields}


def _approval(approval: commands.Approval | None) -> Row:
    if approval is None:
        return {}
    return {
        "approved_target_hash": approval.target_hash,
        "approved_base_hash": approval.base_hash,
        "approval_reason": approval.reason,
        "approved_by": approval.by,
        "approved_at": at(approval.at_ms),
    }
