"""Fold: the newest record of each group, on the driver: a large cluster has thousands of groups, not millions."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools, Int64s
from pipeline.arrow_columns import bools, is_set
from pipeline.fold.columns import BEHEADED, may_be_met, still_confirmed, why_unconfirmed
from pipeline.fold.members import with_known_members
from pipeline.row_keys import NO_ROW, codes, last_of_each
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import CONSUMER_GROUP_STATE, CONSUMER_GROUPS, GROUP_STATE

_COLUMNS = ["group_id", *GROUP_STATE, *CONSUMER_GROUP_STATE, "offsets_partition", "group_position"]
_ARROW = pa.schema([arrow_schema(CONSUMER_GROUPS).field(name) for name in _COLUMNS])


def fold_groups(
    stored: pa.Table,
    events: pa.Table,
    *,
    reread: Sequence[int],
    behind: Sequence[int],
    beheaded: Sequence[int] = (),
    seconded: Sequence[str] = (),
) -> pa.Table:
    """Return one row per live group, from its newest group record.

    A group that changes its type (classic to consumer and back, KIP-848) gets a tombstone of the old type and records
    of the new one, in either order. So the newest record is determined per type first, and a tombstone removes only its
    own type.

    Args:
        stored: `schemas.CONSUMER_GROUPS`.
        events: Decoded rows of kind 'group' and 'group_tombstone', and `consumer_groups.GROUP_EVENTS`.
        reread: Partitions of the offsets topic that are read from their start from this batch on.
        behind: Partitions of the offsets topic that are not read to their end yet.
        beheaded: Of `reread`, those that have lost their beginning: groups that are not found there are kept.
        seconded: Groups whose stored state the brokers confirm now.
    """
    before = with_known_members(stored.select([*_COLUMNS, "confirmed"]))
    partition = before["offsets_partition"].combine_chunks()
    stays = still_confirmed(before["confirmed"].combine_chunks(), partition, reread)
    # What the brokers have seconded is what is stored: a group with records in this batch is another by now.
    unchanged = sorted({*seconded} - {*events["group_id"].to_pylist()})
    if unchanged:
        stays |= bools(
            pc.is_in(before["group_id"], value_set=pa.array(unchanged, pa.string())).combine_chunks()
        )
    why = why_unconfirmed(stored["unconfirmed_reason"].combine_chunks(), stays, partition, reread, beheaded)
    is_partial = _is_partial(events)
    of_events = pc.if_else(pa.array(is_partial), pa.scalar(BEHEADED), pa.scalar(None, pa.string()))
    why = pa.concat_arrays([why, of_events])
    rows = pa.concat_tables([before.select(_COLUMNS).cast(_ARROW), _named(events)])
    confirmed = np.append(stays, ~is_partial)
    is_tombstone = pc.equal(events["row_kind"], "group_tombstone").to_numpy()
    is_gone = np.append(np.zeros(stored.num_rows, np.bool_), is_tombstone)
    position = pc.fill_null(rows["group_position"], NO_ROW).to_numpy()
    # What is made from stored and new records replaces what is stored, wherever the new ones stand.
    is_remade = np.append(np.zeros(stored.num_rows, np.bool_), is_partial)
    (by_type,) = codes(("group_id", "group_type"), rows)
    of_types = last_of_each(by_type, confirmed, is_remade, position)
    of_types = of_types[~is_gone[of_types]]
    (by_group,) = codes(("group_id",), rows)
    # Of two types whose newest records are as new, the first by name.
    name = _rank(rows["group_type"].to_numpy(zero_copy_only=False).astype(str))
    of_groups = of_types[
        last_of_each(by_group[of_types], confirmed[of_types], position[of_types], -name[of_types])
    ]
    is_behind = may_be_met(rows["offsets_partition"].combine_chunks(), behind)
    kept = of_groups[confirmed[of_groups] | is_behind[of_groups] | is_set(why)[of_groups]]
    return (
        rows.take(pa.array(kept))
        .append_column("confirmed", pa.array(confirmed[kept]))
        .append_column("unconfirmed_reason", why.take(pa.array(kept)))
    )


def _named(events: pa.Table) -> pa.Table:
    """`_COLUMNS` of the events, null where they have none of the columns of KIP-848 groups."""
    named = events.rename_columns({"position": "group_position"})
    for name in CONSUMER_GROUP_STATE:
        if name not in named.column_names:
            named = named.append_column(name, pa.nulls(named.num_rows, _ARROW.field(name).type))
    return named.select(_COLUMNS).cast(_ARROW)


def _rank(names: npt.NDArray[np.str_]) -> Int64s:
    """Rank of each name, ascending."""
    return np.argsort(np.argsort(names, kind="stable"))


def _is_partial(events: pa.Table) -> Bools:
    if "is_partial" not in events.column_names:
        return np.zeros(events.num_rows, np.bool_)
    return bools(pc.fill_null(events["is_partial"], fill_value=False).combine_chunks())
