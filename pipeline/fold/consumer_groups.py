"""Fold: KIP-848 groups, each from the newest records of its keys, which its row keeps as Kafka wrote them.

The coordinator writes all records of a group into one partition of the offsets topic, and a tombstone of each when the
group is deleted or becomes a classic one: a group is there as long as one of its records is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow_columns import bools, is_set
from pipeline.fold.columns import BEHEADED, is_in, still_confirmed
from pipeline.fold.consumer_group_state import Row, TopicNames, group_row
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import CONSUMER_GROUP_STATE, CONSUMER_GROUPS, GROUP_STATE

_TYPES = arrow_schema(CONSUMER_GROUPS)
_STORED = [field.name for field in _TYPES.field("records").type.value_type]
GROUP_EVENTS = pa.schema(
    [
        ("row_kind", pa.string()),
        *(_TYPES.field(name).with_nullable(True) for name in ("group_id", *GROUP_STATE)),
        *(_TYPES.field(name) for name in ("offsets_partition", *CONSUMER_GROUP_STATE)),
        ("position", pa.int64()),
        ("is_partial", pa.bool_()),
    ]
)
"""Rows of kind 'group' and 'group_tombstone', with the columns that only KIP-848 groups have.

`is_partial`: some of what the row is made from may be out of date, as its records were deleted unread.
"""


def consumer_group_events(
    stored: pa.Table,
    records: pa.Table,
    topic_names: TopicNames,
    *,
    reread: Sequence[int],
    beheaded: Sequence[int] = (),
) -> pa.Table:
    """Return `GROUP_EVENTS` of each KIP-848 group that has a new record, or a topic id that now resolves to a name.

    Args:
        stored: `schemas.CONSUMER_GROUPS`.
        records: Decoded rows of kind 'group_record' and 'group_record_tombstone'.
        topic_names: Names of existing topics, by id.
        reread: Partitions of the offsets topic that are read from their start from this batch on.
        beheaded: Of these, those that have lost their beginning.
    """
    new: dict[str, list[Row]] = {}
    for record in records.sort_by(
        [("offsets_partition", "ascending"), ("position", "ascending")]
    ).to_pylist():
        new.setdefault(record["group_id"], []).append(record)
    known = _known(stored, [*new, *resolvable(stored, topic_names)], reread=reread, beheaded=beheaded)
    rows = []
    for group_id in sorted({*new, *known}):
        before = known.get(group_id, _NOTHING)
        after = before.after(new.get(group_id, ()))
        if after is not None:
            rows.append({"group_id": group_id, **after.row(topic_names)})
    return pa.Table.from_pylist(rows, schema=GROUP_EVENTS)


def has_unresolved(stored: pa.Table) -> bool:
    """Return whether the `reconciliation` of any row contains a topic id without a known name."""
    members = pc.list_flatten(stored["reconciliation"].combine_chunks())
    return len(pc.list_flatten(pc.struct_field(members, "unresolved_topic_ids"))) > 0


def resolvable(stored: pa.Table, topic_names: TopicNames) -> list[str]:
    """Return the groups with topic ids that had no name when their rows were made, and have one now."""
    members = stored["reconciliation"].combine_chunks()
    ids = pc.struct_field(pc.list_flatten(members), "unresolved_topic_ids")
    is_named = pc.is_in(pc.list_flatten(ids), value_set=pa.array(list(topic_names), pa.string()))
    member = pc.list_parent_indices(ids).filter(is_named)
    group = pc.list_parent_indices(members).take(member).unique()
    return list(map(str, stored["group_id"].take(group).to_pylist()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """State of a group, as its records show it."""

    records: Mapping[tuple[int, str], Row]
    """Records by type and key."""
    offsets_partition: int | None
    position: int
    """Position of the newest record that it is made from; -1 if any record is newer."""
    is_partial: bool = False
    is_unread: bool = False
    """An earlier version has passed over its records; they are read again, and until then what is stored stays."""

    def after(self, new: Sequence[Row]) -> "_Known | None":
        """Apply these records in the order of their positions; None if there is no state to report."""
        if self.is_unread:
            return None
        kept, last = dict(self.records), self.position
        partition = self.offsets_partition
        for record in new:
            if record["position"] <= self.position:
                continue
            key = record["record_type"], record["record_key"]
            if record["row_kind"] == "group_record_tombstone":
                kept.pop(key, None)
            else:
                kept[key] = {name: record[name] for name in _STORED}
            last, partition = record["position"], record["offsets_partition"]
        if not (kept or self.records):
            return None
        return _Known(
            records=kept,
            offsets_partition=partition,
            position=last,
            is_partial=self.is_partial and bool(kept),
        )

    def row(self, topic_names: TopicNames) -> Row:
        """A row of `GROUP_EVENTS` without the name."""
        content: dict[str, Any] = {"group_type": "consumer"}
        if self.records:
            content = group_row(self.records.values(), topic_names)
            content["records"] = [self.records[key] for key in sorted(self.records)]
        return {
            "row_kind": "group" if self.records else "group_tombstone",
            "offsets_partition": self.offsets_partition,
            "position": self.position,
            "is_partial": self.is_partial,
            **content,
        }


_NOTHING = _Known(records={}, offsets_partition=None, position=-1)


def _known(
    stored: pa.Table, groups: Sequence[str], *, reread: Sequence[int], beheaded: Sequence[int]
) -> dict[str, _Known]:
    """What the stored rows of these groups are good for.

    What is read again from its start replaces all that is stored, unless the log has lost its beginning.
    """
    is_wanted = pc.and_(
        pc.is_in(stored["group_id"], value_set=pa.array(groups, pa.string())),
        pc.equal(stored["group_type"], "consumer"),
    )
    rows = stored.filter(is_wanted)
    partition = rows["offsets_partition"].combine_chunks()
    confirmed = still_confirmed(rows["confirmed"].combine_chunks(), partition, reread)
    why = rows["unconfirmed_reason"].combine_chunks()
    # Said by a coordinator, not made from records: nothing of it can be out of date once its records are read.
    is_said = ~is_set(partition)
    is_beheaded = is_in(partition, beheaded) | (bool(beheaded) & is_said)
    is_reread = is_in(partition, reread) | (is_said & ~bools(pc.equal(why, BEHEADED)))
    found = {}
    columns = ["group_id", "offsets_partition", "group_position", "unconfirmed_reason", "records"]
    for number, row in enumerate(rows.select(columns).to_pylist()):
        is_partial = bool(is_beheaded[number]) or (
            row["unconfirmed_reason"] is not None and not is_reread[number]
        )
        if confirmed[number] or is_partial:
            found[row["group_id"]] = _Known(
                records={
                    (record["record_type"], record["record_key"]): record for record in row["records"] or ()
                },
                offsets_partition=row["offsets_partition"],
                position=-1 if is_partial else row["group_position"],
                is_partial=is_partial,
                is_unread=row["records"] is None and not is_partial,
            )
    return found
