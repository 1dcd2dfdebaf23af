"""Decode: group records, one at a time, the newest of each group; only rebalances write them, so they are few.

A classic group's record is read whole. For share and streams groups only the header record counts here: it shows that
the group exists, and its type. KIP-848 groups consist of many records (`consumer_groups`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructField

from assignor.errors import DecodeError
from assignor.protocol.kafka.consumer import decode_assignment, decode_subscription
from assignor.protocol.kafka.consumer_group import DECODERS
from assignor.protocol.kafka.group_metadata import GroupMember, GroupMetadata, decode_group_metadata
from assignor.protocol.kafka.offsets import group_id_of, record_type_of
from assignor.protocol.kafka.record_types import GroupType, RecordType, group_type_of
from assignor.protocol.kafka.sticky import claims_of
from assignor.strategies.catalogue import CATALOGUE, RebalanceProtocol
from pipeline.decode.consumer_groups import consumer_group_row
from pipeline.decode.raw_records import raw_records
from pipeline.tables.schemas import CONSUMER_GROUPS, GROUP_STATE

_EAGER, _COOPERATIVE = (protocol.name.lower() for protocol in RebalanceProtocol)

Row = dict[str, Any]

HEADER_TYPES = (
    RecordType.GROUP_METADATA,
    RecordType.SHARE_GROUP_METADATA,
    RecordType.STREAMS_GROUP_METADATA,
)
"""The record of a group of these types that lives as long as the group does."""
CONSUMER_GROUP_TYPES = tuple(DECODERS)
"""The records of a KIP-848 group."""

GROUP_COLUMNS = tuple(StructField(name, CONSUMER_GROUPS[name].dataType) for name in GROUP_STATE)
"""Columns of `schemas.CONSUMER_GROUPS` that a group row fills; all others leave them null."""

CONSUMER_PROTOCOL = "consumer"


@dataclass(slots=True)
class GroupRows:
    """Result of decoding the group records of one Arrow batch."""

    good: list[Row] = field(default_factory=list)
    """The newest conclusive record of each key, as a row of kind 'group' or 'group_record', or a tombstone."""
    bad: list[Row] = field(default_factory=list)
    """Rows of kind 'bad'."""
    superseded: int = 0
    """Number of records that were not decoded, because a newer one of the same key is among the good."""


def group_rows(records: pa.RecordBatch, wants_group: Callable[[str], bool]) -> GroupRows:
    """Decode the newest record of each key.

    If a group's own record is whole but the bytes of some members are unreadable, the result is a good row and a bad
    one: the group's row names every such member, and the one bad row keeps the bytes. The same holds for a record of a
    KIP-848 group with a readable key and an unreadable value.

    Args:
        records: All of `HEADER_TYPES`, or all of `CONSUMER_GROUP_TYPES`, so that the good rows are of one family.
        wants_group: Whether a group of this name is wanted.
    """
    rows = GroupRows()
    raw, keys = raw_records(records), records["key"].to_pylist()
    partitions, offsets = (records[name].to_pylist() for name in ("partition", "offset"))
    done: set[tuple[int, bytes]] = set()
    # A record of a large group takes a tenth of a second, and each member that comes or goes leaves one.
    for index in sorted(range(len(keys)), key=lambda i: offsets[i], reverse=True):
        place = (partitions[index], keys[index])
        if place in done:
            rows.superseded += 1
        elif _add_row(rows, raw.slice(index, 1), wants_group):
            done.add(place)
    return rows


def _add_row(rows: GroupRows, record_of_one: pa.RecordBatch, wants_group: Callable[[str], bool]) -> bool:
    """Whether the record shows the group's present state, so that older ones of its key no longer matter."""
    (record,) = record_of_one.to_pylist()
    try:
        group_id = group_id_of(record["key"])
        if not wants_group(group_id):
            return False
        row, unreadable = _row(group_id, record)
    except DecodeError as error:
        rows.bad.append(_bad(record, str(error)))
        return False
    rows.good.append(row)
    if unreadable is not None:
        rows.bad.append(_bad(record, unreadable))
    return True


def _why(members: list[Row]) -> str | None:
    """Return why members of a group cannot be read; None if all can."""
    unreadable = [member for member in members if member["error"]]
    if not unreadable:
        return None
    first, others = unreadable[0], len(unreadable) - 1
    return f"member {first['member_id']}: {first['error']}" + (f" (and {others} more)" if others else "")


def _bad(record: Row, reason: str) -> Row:
    return record | {"row_kind": "bad", "kind": _kind(record["key"]), "reason": reason}


def _kind(key: bytes) -> str:
    return RecordType(record_type_of(key)).name.lower()


def _row(group_id: str, record: Row) -> tuple[Row, str | None]:
    """The row of a group's record, and why a part of it is unknown."""
    record_type = RecordType(record_type_of(record["key"]))
    if record_type in DECODERS:
        return consumer_group_row(record)
    group_type = group_type_of(record_type)
    row = {
        "row_kind": "group_tombstone" if record["value"] is None else "group",
        "group_id": group_id,
        "group_type": group_type.value if group_type else None,
        "offsets_partition": record["partition"],
        "position": record["offset"],
    }
    if record["value"] is not None and group_type is GroupType.CLASSIC:
        row |= _classic(decode_group_metadata(record["value"]))
        return row, _why(row["members"])
    # The members of share and streams groups are in records of their own, which are not read.
    return row, None


def _classic(group: GroupMetadata) -> Row:
    members = [_member(member, group) for member in group.members]
    return {
        # The log holds a group's record from the end of each rebalance only: no state in between shows.
        "state": "Stable" if group.members else "Empty",
        "protocol_type": group.protocol_type,
        "assignor": group.protocol,
        "rebalance_protocol": _rebalance_protocol(group.protocol, members),
        "generation": group.generation,
        "leader": group.leader,
        "members": members,
    }


def _rebalance_protocol(assignor: str | None, members: Sequence[Row]) -> str | None:
    """The members' rebalance protocol, as far as the record shows it; else None.

    The other assignors that a member lists decide it, and the record does not contain them. But eager members give up
    everything before they join, so they claim nothing when they join again.
    """
    protocols = CATALOGUE[assignor].protocols if assignor is not None and assignor in CATALOGUE else ()
    if protocols == (RebalanceProtocol.EAGER,):
        return _EAGER
    if any(member["owned"] for member in members):
        return _COOPERATIVE
    has_been_there = any(member["owned_generation"] is not None for member in members)
    return _EAGER if protocols and has_been_there else None


def _member(member: GroupMember, group: GroupMetadata) -> Row:
    row: Row = {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rack": None,
        "topics": None,
        "owned": None,
        "owned_generation": None,
        "assigned": None,
        "error": None,
    }
    if group.protocol_type != CONSUMER_PROTOCOL:
        return row
    try:
        subscription = decode_subscription(member.subscription)
        claims = claims_of(group.protocol, subscription)
        assigned = decode_assignment(member.assignment).partitions
    except DecodeError as error:
        return row | {"error": str(error)}
    return row | {
        "rack": subscription.rack,
        "topics": sorted(set(subscription.topics)),
        "owned": claims.owned,
        "owned_generation": claims.generation if claims.generation >= 0 else None,
        "assigned": assigned,
    }
