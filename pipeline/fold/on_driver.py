"""Fold: as `step` does it, from Arrow to Arrow on the driver, for tables that are small.

To plan, compile and schedule a join takes Spark half a second, however few rows there are; here ten thousand take
hundredths. `tests/spark/test_fold_on_driver.py` holds the two against each other.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from assignor.model.arrays import Bools, Int64s
from pipeline.fold.step import COMMIT, LAG_KEY, OWNER, PARTITION_KEY
from pipeline.row_keys import NO_ROW, codes, key_columns, last_of_each, matched, struct, taken
from pipeline.tables.schemas import CONSUMER_GROUPS, GROUP_STATE

_ANSWER = ("topic_id", "log_start_offset", "log_end_offset", "isolation", "observed_at_ms", "error")
_GROUP_COLUMNS = ["group_id", *GROUP_STATE, "offsets_partition", "group_position"]
_GROUPS = pa.schema([to_arrow_schema(CONSUMER_GROUPS).field(name) for name in _GROUP_COLUMNS])
_TIMESTAMP = pa.timestamp("us", tz="UTC")
_OWNED = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        *(
            (name, pa.int32() if name in {"generation", "offsets_partition"} else pa.string())
            for name in OWNER
        ),
    ]
)


def fold_topic_offsets(stored: pa.Table, observed: pa.Table) -> pa.Table:
    """As `step.fold_topic_offsets`."""
    tables = stored, observed
    rows = old, new = matched(*codes(PARTITION_KEY, *tables))
    columns = key_columns(PARTITION_KEY, tables, rows)
    columns["old"] = taken(struct(stored, stored.column_names), old)
    columns["new"] = taken(struct(observed, _ANSWER), new)
    return pa.table(columns)


def missing_topics(stored: pa.Table, observed: pa.Table) -> list[str]:
    """As `step.missing_topics`."""
    alive = stored.filter(pc.is_null(stored["deleted_at"]))
    known, seen = codes(PARTITION_KEY, alive, observed)
    missing = alive.filter(pa.array(~np.isin(known, seen)))
    return sorted(missing["topic"].unique().to_pylist())


def fold_groups(
    stored: pa.Table, events: pa.Table, *, reread: Sequence[int], behind: Sequence[int]
) -> pa.Table:
    """One row per live group: its newest group record.

    A group that changes its type (classic to consumer and back, KIP-848) gets a tombstone of the old type
    and records of the new one, in either order; so the newest record is found for each type first, and a
    tombstone removes its own type only.

    Args:
        stored: `schemas.CONSUMER_GROUPS`.
        events: Decoded rows of kind 'group' and 'group_tombstone'.
        reread: Partitions of the offsets topic that are read from their start from this batch on.
        behind: Partitions of the offsets topic that are not read to their end yet.
    """
    before = stored.select([*_GROUP_COLUMNS, "confirmed"])
    stays = _still_confirmed(
        before["confirmed"].combine_chunks(), before["offsets_partition"].combine_chunks(), reread
    )
    named = events.rename_columns({"position": "group_position"}).select(_GROUP_COLUMNS)
    rows = pa.concat_tables([before.select(_GROUP_COLUMNS).cast(_GROUPS), named.cast(_GROUPS)])
    confirmed = np.append(stays, np.ones(events.num_rows, np.bool_))
    is_tombstone = pc.equal(events["row_kind"], "group_tombstone").to_numpy()
    is_gone = np.append(np.zeros(stored.num_rows, np.bool_), is_tombstone)
    position = pc.fill_null(rows["group_position"], NO_ROW).to_numpy()
    (by_type,) = codes(("group_id", "group_type"), rows)
    of_types = last_of_each(by_type, confirmed, position)
    of_types = of_types[~is_gone[of_types]]
    (by_group,) = codes(("group_id",), rows)
    # Of two types whose newest records are as new, the first by name.
    name = np.argsort(
        np.argsort(rows["group_type"].to_numpy(zero_copy_only=False).astype(str), kind="stable")
    )
    of_groups = of_types[
        last_of_each(by_group[of_types], confirmed[of_types], position[of_types], -name[of_types])
    ]
    is_behind = _is_in(rows["offsets_partition"].combine_chunks(), behind)
    kept = of_groups[confirmed[of_groups] | is_behind[of_groups]]
    return rows.take(pa.array(kept)).append_column("confirmed", pa.array(confirmed[kept]))


def held_partitions(groups: pa.Table, moved: pa.Table) -> pa.Table:
    """One row per partition that a member of a classic group has, with the columns of its owner.

    As `step.assigned_partitions`, and as `control_messages.held_partitions` with what followers have handed over since.

    Args:
        groups: `schemas.CONSUMER_GROUPS`.
        moved: `control_messages.HANDED_OVER`.
    """
    owners: dict[tuple[str, str, int], tuple[Any, ...]] = {}
    members: dict[tuple[str, str], tuple[Any, ...]] = {}
    for group in groups.select(["group_id", "generation", "offsets_partition", "members"]).to_pylist():
        for member in sorted(group["members"] or (), key=lambda one: one["member_id"]):
            who = {**member, **group}
            owner = tuple(who[name] for name in OWNER)
            members[group["group_id"], member["member_id"]] = owner
            for topic, numbers in member["assigned"] or ():
                for number in numbers:
                    # Of two that were given the same partition, the smaller member id.
                    owners.setdefault((group["group_id"], topic, number), owner)
    for one in moved.to_pylist():
        place = one["group_id"], one["topic"], one["partition"]
        if place in owners:
            new_owner = members.get((one["group_id"], one["member_id"]))
            if new_owner is None:
                del owners[place]
            else:
                owners[place] = new_owner
    columns = (
        zip(*((*place, *owner) for place, owner in owners.items()), strict=True)
        if owners
        else [()] * len(_OWNED)
    )
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, _OWNED, strict=True)], schema=_OWNED
    )


def newest_commits(decoded: pa.Table) -> pa.Table:
    """Rows of kind 'commit' and 'tombstone', the newest of each partition; as `step.newest_commits`."""
    rows = decoded.filter(pc.is_in(decoded["row_kind"], value_set=pa.array(["commit", "tombstone"])))
    (key,) = codes(LAG_KEY, rows)
    is_tombstone = pc.equal(rows["row_kind"], "tombstone").to_numpy()
    ranks = rows["position"].to_numpy(), rows["offsets_partition"].to_numpy(), is_tombstone
    return rows.take(pa.array(last_of_each(key, *ranks)))


def fold_commits(
    stored: pa.Table, commits: pa.Table, held: pa.Table, *, reread: Sequence[int], behind: Sequence[int]
) -> pa.Table:
    """As `step.fold_commits`.

    Args:
        stored: `schemas.PARTITION_LAG`.
        commits: `newest_commits`.
        held: `held_partitions`.
        reread: Partitions of the offsets topic that are read from their start from this batch on.
        behind: Partitions of the offsets topic that are not read to their end yet.
    """
    tables = stored, commits, held
    rows = old, new, owner = matched(*codes(LAG_KEY, *tables))
    has_old, has_new = old != NO_ROW, new != NO_ROW
    before = {
        name: taken(stored[name].combine_chunks(), old)
        for name in (*COMMIT, "confirmed", "offsets_partition")
    }
    partition_now = taken(commits["offsets_partition"].combine_chunks(), new)
    stays = _still_confirmed(before["confirmed"], before["offsets_partition"], reread)
    is_newer = has_new & (
        ~_known(before["commit_position"])
        | (has_old & ~stays)
        | _true(pc.not_equal(partition_now, before["offsets_partition"]))
        | _true(pc.greater(taken(commits["position"].combine_chunks(), new), before["commit_position"]))
    )
    is_commit = is_newer & ~_true(pc.equal(taken(commits["row_kind"].combine_chunks(), new), "tombstone"))
    partition = pc.coalesce(
        partition_now, before["offsets_partition"], taken(held["offsets_partition"].combine_chunks(), owner)
    )
    confirmed = has_new | stays | ~has_old
    holds = confirmed | _is_in(partition, behind)
    columns = {
        **key_columns(LAG_KEY, tables, rows),
        "old": taken(struct(stored, stored.column_names), old),
        "owner": taken(struct(held, OWNER), owner),
        "has_new_commit": pa.array(is_commit),
        "is_reread": pa.array(is_newer & has_old & ~stays),
        **_commit_columns(before, commits, new, is_newer=is_newer, is_commit=is_commit, holds=holds),
        "offsets_partition": partition,
        "confirmed": pa.array(confirmed | ~holds),
    }
    is_row = _known(columns["committed_offset"]) | (owner != NO_ROW)
    return pa.table(columns).filter(pa.array(is_row))


def _commit_columns(
    before: dict[str, pa.Array],
    commits: pa.Table,
    new: Int64s,
    *,
    is_newer: Bools,
    is_commit: Bools,
    holds: Bools,
) -> dict[str, pa.Array]:
    """The commit that holds: the new one where it is newer (all null for a tombstone), else the stored one."""
    millis = commits["commit_timestamp_ms"].combine_chunks()
    given = {
        "committed_offset": commits["committed_offset"].combine_chunks(),
        "leader_epoch": commits["leader_epoch"].combine_chunks(),
        "commit_topic_id": commits["topic_id"].combine_chunks(),
        "commit_timestamp": pc.multiply_checked(millis, 1000).cast(_TIMESTAMP),
        "commit_position": commits["position"].combine_chunks(),
    }
    columns: dict[str, pa.Array] = {}
    for name in COMMIT:
        # Even a tombstone has a position, by which what comes later is newer.
        counts = is_newer if name == "commit_position" else is_commit
        value = taken(given[name], np.where(counts, new, NO_ROW))
        column = pc.if_else(pa.array(is_newer), value, before[name])
        columns[name] = pc.if_else(pa.array(holds), column, pa.scalar(None, column.type))
    return columns


def _still_confirmed(confirmed: pa.Array, partition: pa.Array, reread: Sequence[int]) -> Bools:
    # Of a row without a partition nobody knows whether it is among them.
    return _true(confirmed) & ~(_is_in(partition, reread) | (bool(reread) & ~_known(partition)))


def _is_in(column: pa.Array, numbers: Sequence[int]) -> Bools:
    return _true(pc.is_in(column, value_set=pa.array(numbers, column.type)))


def _known(column: pa.Array) -> Bools:
    known: Bools = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return known


def _true(column: pa.Array) -> Bools:
    true: Bools = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return true
