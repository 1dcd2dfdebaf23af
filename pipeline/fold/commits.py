"""Fold: merges the stored commits with those of one batch. Nothing is measured here.

The last write wins by the record's offset in its partition of the offsets topic, never by a timestamp: all
records of a group are in one partition, and the clocks of coordinators differ.

When a partition of the offsets topic is read again from its start, because its position is no
longer valid, its rows become unconfirmed: the first record about any of them counts, whatever its position. Reading a
complete log delivers every commit that still counts, so rows that are still unconfirmed at its end had their tombstone
compacted away, and are dropped. A log that has lost its beginning is not complete: its rows are kept, with the reason,
until a record or a broker confirms or denies them. A broker's answer about a commit comes as a row of kind 'answer' or
'answer_none', and counts only for unconfirmed rows.

If the offsets topic cannot be read, coordinators are asked instead. Their answers come as commits or tombstones without
a position. An answer describes the present state, and is new only if the offset differs; it has no commit time.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools, Int64s
from pipeline.arrow_columns import TIMESTAMP, bools, is_set
from pipeline.fold.asked import NOBODY, Asked, standing
from pipeline.fold.columns import may_be_met, still_confirmed, why_unconfirmed
from pipeline.fold.owners import OWNER
from pipeline.row_keys import LAG_KEY, NO_ROW, codes, key_columns, matched, struct, taken

_COMMIT = ("committed_offset", "leader_epoch", "commit_topic_id", "commit_timestamp", "commit_position")
_BEFORE = (*_COMMIT, "confirmed", "unconfirmed_reason", "offsets_partition")


def fold_commits(
    stored: pa.Table,
    commits: pa.Table,
    held: pa.Table,
    *,
    reread: Sequence[int],
    behind: Sequence[int],
    beheaded: Sequence[int] = (),
    asked: Asked = NOBODY,
) -> pa.Table:
    """Return one row per partition that a group has committed or owns.

    A row has the stored row (`old`), the commit that now holds (top-level columns), `has_new_commit`, `is_repeated` (a
    coordinator has returned the stored offset again), `is_reread` (a full reading delivered the commit: it may be older
    than the stored one) and the `owner`; null if there is none.

    Args:
        stored: `schemas.PARTITION_LAG`.
        commits: `Decoded.newest` of kind 'commit' and 'tombstone', and answers about other partitions.
        held: `owners.held_partitions`.
        reread: Partitions of the offsets topic that are read from their start from this batch on.
        behind: Those that are not read to their end yet.
        beheaded: Of `reread`, those that have lost their beginning.
        asked: Groups whose coordinators were asked, and those without an answer.
    """
    tables = stored, commits, held
    rows = old, new, owner = matched(*codes(LAG_KEY, *tables))
    has_old = old != NO_ROW
    before = {name: taken(stored[name].combine_chunks(), old) for name in _BEFORE}
    stays = still_confirmed(before["confirmed"], before["offsets_partition"], reread)
    is_said, is_answer = new != NO_ROW, _is_kind(commits, new, "answer", "answer_none")
    new = np.where(is_answer & has_old & stays, NO_ROW, new)
    has_new = new != NO_ROW
    is_newer = has_new & _is_newer(before, commits, new, is_lost=has_old & ~stays)
    is_commit = is_newer & ~_is_kind(commits, new, "tombstone", "answer_none")
    partition = pc.coalesce(_partition(commits, new), before["offsets_partition"], _partition(held, owner))
    keys = key_columns(LAG_KEY, tables, rows)
    is_unnamed = ~is_said & is_set(before["committed_offset"])
    is_told, doubt = standing(keys["group_id"], asked, is_unnamed=is_unnamed)
    # Where there was no row there is nothing to confirm.
    confirmed = (has_new | stays | ~has_old | is_told) & ~is_set(doubt)
    stored_why = before["unconfirmed_reason"]
    why = pc.coalesce(doubt, why_unconfirmed(stored_why, confirmed, partition, reread, beheaded))
    holds = confirmed | may_be_met(partition, behind) | is_set(why)
    commit = _commit_columns(before, commits, new, is_newer=is_newer, is_commit=is_commit, holds=holds)
    commit["commit_timestamp"] = _dated(commit["commit_timestamp"], is_told & _is_said(commits, new))
    columns = {
        **keys,
        "old": taken(struct(stored, stored.column_names), old),
        "owner": taken(struct(held, OWNER), owner),
        "has_new_commit": pa.array(is_commit & ~is_answer),
        "is_repeated": pa.array(is_told & _is_said(commits, new) & has_old & ~is_newer),
        # A coordinator states the present, so it supersedes nothing newer.
        "is_reread": pa.array(is_newer & has_old & ~stays & (is_answer | ~_is_said(commits, new))),
        **commit,
        "offsets_partition": partition,
        "confirmed": pa.array(confirmed | ~holds),
        "unconfirmed_reason": why,
    }
    # A partition may be owned whose commit is gone: the owner stays, the commit does not.
    is_row = is_set(columns["committed_offset"]) | (owner != NO_ROW)
    return pa.table(columns).filter(pa.array(is_row))


def _is_newer(before: dict[str, pa.Array], commits: pa.Table, new: Int64s, *, is_lost: Bools) -> Bools:
    """Rows whose new commit, if there is one, replaces the stored one; what a broker says only if it differs."""
    is_said = _is_said(commits, new)
    is_as_before = is_said & bools(
        pc.equal(taken(commits["committed_offset"].combine_chunks(), new), before["committed_offset"])
    )
    return ~is_as_before & (
        ~is_set(before["commit_position"])
        | is_said
        | is_lost
        | bools(pc.not_equal(_partition(commits, new), before["offsets_partition"]))
        | bools(pc.greater(taken(commits["position"].combine_chunks(), new), before["commit_position"]))
    )


def _partition(table: pa.Table, rows: Int64s) -> pa.Array:
    """Partition of the offsets topic of each of these rows."""
    return taken(table["offsets_partition"].combine_chunks(), rows)


def _dated(times: pa.Array, is_undated: Bools) -> pa.Array:
    """Commit times without those that a broker's answer leaves open.

    A coordinator may report the commit of the record that was read, or a later one with the same offset.
    """
    return pc.if_else(pa.array(is_undated), pa.scalar(None, TIMESTAMP), times)


def _is_said(commits: pa.Table, new: Int64s) -> Bools:
    """Which rows a broker has said: they stand in no record."""
    is_said: Bools = (new != NO_ROW) & ~is_set(taken(commits["position"].combine_chunks(), new))
    return is_said


def _is_kind(commits: pa.Table, new: Int64s, *kinds: str) -> Bools:
    found = taken(commits["row_kind"].combine_chunks(), new)
    return bools(pc.is_in(found, value_set=pa.array(kinds)))


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
        if name == "commit_position":
            # An answer has none: it is no older than what was read.
            value = pc.coalesce(value, before[name])
        column = pc.if_else(pa.array(is_newer), value, before[name])
        columns[name] = pc.if_else(pa.array(holds), column, pa.scalar(None, column.type))
    return columns
