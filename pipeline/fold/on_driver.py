"""Fold: as `step` does it, from Arrow to Arrow on the driver, for tables that are small.

To plan, compile and schedule a join takes Spark half a second, however few rows there are; here ten thousand take
hundredths. `tests/spark/test_fold_on_driver.py` holds the two against each other.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools, Int64s
from pipeline.arrow_columns import TIMESTAMP, bools, is_set
from pipeline.fold.columns import is_in, still_confirmed
from pipeline.fold.step import COMMIT, OWNER
from pipeline.row_keys import (
    LAG_KEY,
    NO_ROW,
    PARTITION_KEY,
    codes,
    key_columns,
    last_of_each,
    matched,
    struct,
    taken,
)

_ANSWER = ("topic_id", "log_start_offset", "log_end_offset", "isolation", "observed_at_ms", "error")


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
        held: `owners.held_partitions`.
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
    for name in COMMIT:
        # Even a tombstone has a position, by which what comes later is newer.
        counts = is_newer if name == "commit_position" else is_commit
        value = taken(given[name], np.where(counts, new, NO_ROW))
        column = pc.if_else(pa.array(is_newer), value, before[name])
        columns[name] = pc.if_else(pa.array(holds), column, pa.scalar(None, column.type))
    return columns
