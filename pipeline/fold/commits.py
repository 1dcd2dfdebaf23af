"""Fold: the stored commits and those of one batch, brought together. Nothing is measured here.

The last write wins by the record's offset in its partition of the offsets topic, never by a timestamp: all
records of a group are in one partition, and the clocks of coordinators differ.

When a partition of the offsets topic is read again from its start, because the position in it does not hold any
more, its rows become unconfirmed: the first record about any of them counts, whatever its position. A full reading
delivers every commit that still counts, so the rows that are still unconfirmed when it has come to the end had
their tombstone compacted away, and are dropped.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools, Int64s
from pipeline.arrow_columns import TIMESTAMP, bools, is_set
from pipeline.fold.columns import is_in, still_confirmed
from pipeline.fold.owners import OWNER
from pipeline.row_keys import LAG_KEY, NO_ROW, codes, key_columns, matched, struct, taken

_COMMIT = ("committed_offset", "leader_epoch", "commit_topic_id", "commit_timestamp", "commit_position")


def fold_commits(
    stored: pa.Table, commits: pa.Table, held: pa.Table, *, reread: Sequence[int], behind: Sequence[int]
) -> pa.Table:
    """One row per partition that a group has committed or owns.

    With the stored row (`old`), the commit that now holds (top-level columns), `has_new_commit`, `is_reread`
    (it came with a full reading, and may be older than what was known) and the `owner`; each is null where there
    is none.

    Args:
        stored: `schemas.PARTITION_LAG`.
        commits: Decoded rows of kind 'commit' and 'tombstone', the newest of each partition (`Decoded.newest`).
        held: `owners.held_partitions`.
        reread: Partitions of the offsets topic that are read from their start from this batch on.
        behind: Partitions of the offsets topic that are not read to their end yet.
    """
    tables = stored, commits, held
    rows = old, new, owner = matched(*codes(LAG_KEY, *tables))
    has_old, has_new = old != NO_ROW, new != NO_ROW
    before = {
        name: taken(stored[name].combine_chunks(), old)
        for name in (*_COMMIT, "confirmed", "offsets_partition")
    }
    partition_now = taken(commits["offsets_partition"].combine_chunks(), new)
    stays = still_confirmed(before["confirmed"], before["offsets_partition"], reread)
    is_newer = has_new & (
        ~is_set(before["commit_position"])
        | (has_old & ~stays)
        | bools(pc.not_equal(partition_now, before["offsets_partition"]))
        | bools(pc.greater(taken(commits["position"].combine_chunks(), new), before["commit_position"]))
    )
    is_commit = is_newer & ~bools(pc.equal(taken(commits["row_kind"].combine_chunks(), new), "tombstone"))
    partition = pc.coalesce(
        partition_now, before["offsets_partition"], taken(held["offsets_partition"].combine_chunks(), owner)
    )
    # Where there was no row there is nothing to confirm.
    confirmed = has_new | stays | ~has_old
    holds = confirmed | is_in(partition, behind)
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
    # A partition may be owned whose commit is gone: the owner stays, the commit does not.
    is_row = is_set(columns["committed_offset"]) | (owner != NO_ROW)
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
        "commit_timestamp": pc.multiply_checked(millis, 1000).cast(TIMESTAMP),
        "commit_position": commits["position"].combine_chunks(),
    }
    columns: dict[str, pa.Array] = {}
    for name in _COMMIT:
        # Even a tombstone has a position, by which what comes later is newer.
        counts = is_newer if name == "commit_position" else is_commit
        value = taken(given[name], np.where(counts, new, NO_ROW))
        column = pc.if_else(pa.array(is_newer), value, before[name])
        columns[name] = pc.if_else(pa.array(holds), column, pa.scalar(None, column.type))
    return columns
