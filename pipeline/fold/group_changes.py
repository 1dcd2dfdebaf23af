"""Fold: changes of groups since their history was last written, compared for all groups at once.

The group instance id identifies a member or, without one, the member id. A value that is unknown on either side is not
compared: members do not leave because they were not reported.

A classic group counts as rebalanced when its generation changes. The epoch of a KIP-848 group also rises without a
move, and its members move one after another within one epoch, so it counts as rebalanced when it is Stable with other
owners.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools, Int64s
from assignor.protocol.ranges import format_ranges
from pipeline.arrow_columns import bools, is_set
from pipeline.fold.members import MEMBER_KEY, grouped, lists_differ, members_of
from pipeline.row_keys import NO_ROW, codes, looked_up, matched
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import GROUP_HISTORY, GROUP_STATE

KNOWN = ("group_id", *GROUP_STATE, "offsets_partition")
"""Columns of a group that are compared, and that go into the history."""
IS_GONE = "is_gone"
GONE = "gone"
"""`why` in the row of a group that no longer has a record."""

Holdings: TypeAlias = Mapping[str, Mapping[str, str]]
"""Member id -> topic -> partition ranges."""
Targets: TypeAlias = Callable[[str], Holdings | None]
"""Partitions of each member in the newest plan of a group; None if there is no plan."""

_ROWS = pa.schema([arrow_schema(GROUP_HISTORY).field(name) for name in (*KNOWN, "why", "joined", "left")])


def group_changes(before: pa.Table, after: pa.Table, targets: Targets) -> pa.Table:
    """One row per group that has changed: `KNOWN`, with `why`, `joined` and `left` of the history.

    The row of a group that no longer exists contains only its type.

    Args:
        before: `KNOWN` and `IS_GONE`: the groups as in the history; a group that is missing there is first seen.
        after: `KNOWN`: the groups as they are now.
        targets: See `Targets`.
    """
    rows = matched(*codes(("group_id",), before, after))
    was, now = (_taken(table, own) for table, own in zip((before, after), rows, strict=True))
    (was_known, is_there), was_gone = (own != NO_ROW for own in rows), bools(was[IS_GONE].combine_chunks())
    both = was_known & is_there & ~was_gone
    moves = _member_changes(was, now, both & _has_members(was) & _has_members(now))
    is_next = both & _is_rebalanced(was, now, both & moves.is_compared)
    words = {
        "first_seen": ~was_known,
        GONE: was_known & ~is_there & ~was_gone,
        "returned": was_gone & is_there,
        "type_changed": both & bools(pc.not_equal(was["group_type"], now["group_type"]).combine_chunks()),
        **moves.words(len(both)),
    }
    words["moved_by_plan"] = _is_moved_by_plan(was, now, is_next & moves.is_compared, targets)
    words["rebalanced"] = is_next & ~np.logical_or.reduce(list(words.values()))
    due = np.flatnonzero(np.logical_or.reduce(list(words.values())))
    state = _state(was, now, due)
    return pa.table(
        {
            **{name: state[name] for name in KNOWN},
            "why": [", ".join(word for word, holds in words.items() if holds[row]) for row in due.tolist()],
            "joined": [moves.joined_of(row) for row in due.tolist()],
            "left": [moves.left_of(row) for row in due.tolist()],
        },
        schema=_ROWS,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _MemberChanges:
    """Changes of members, by row of the groups."""

    is_compared: Bools
    joined: Mapping[int, list[str]]
    left: Mapping[int, list[str]]
    replaced: Int64s
    resubscribed: Int64s

    def words(self, groups: int) -> dict[str, Bools]:
        """Return for each word the groups that it applies to."""
        rows = {
            "joined": np.array(list(self.joined), np.int64),
            "left": np.array(list(self.left), np.int64),
            "replaced": self.replaced,
            "resubscribed": self.resubscribed,
        }
        return {word: np.isin(np.arange(groups), own) for word, own in rows.items()}

    def joined_of(self, row: int) -> list[str] | None:
        """Members that have joined; None if that is not known."""
        return self.joined.get(row, []) if self.is_compared[row] else None

    def left_of(self, row: int) -> list[str] | None:
        """Members that have left; None if that is not known."""
        return self.left.get(row, []) if self.is_compared[row] else None


def _member_changes(was: pa.Table, now: pa.Table, where: Bools) -> _MemberChanges:
    old, new = members_of(was, where), members_of(now, where)
    of_old, of_new = codes(MEMBER_KEY, old, new)
    before, after = looked_up(of_new, of_old), looked_up(of_old, of_new)
    stays = np.flatnonzero(before != NO_ROW)
    there, here = old.take(pa.array(before[stays])), new.take(pa.array(stays))
    group = here["group"].to_numpy()
    has_other_id = bools(pc.not_equal(there["member_id"], here["member_id"]).combine_chunks())
    topics = tuple(side["topics"].combine_chunks() for side in (there, here))
    has_other_topics = lists_differ(*topics) & is_set(topics[0]) & is_set(topics[1])
    return _MemberChanges(
        is_compared=where,
        joined=grouped(new, np.flatnonzero(before == NO_ROW)),
        left=grouped(old, np.flatnonzero(after == NO_ROW)),
        replaced=group[has_other_id],
        resubscribed=group[has_other_topics],
    )


def _taken(table: pa.Table, rows: Int64s) -> pa.Table:
    """These rows in one chunk, null where there is no row."""
    return table.take(pa.array(rows, mask=rows == NO_ROW)).combine_chunks()


def _has_members(groups: pa.Table) -> Bools:
    # For a group of another type only the header is read, without a state, so an empty list of members means nothing.
    # The state of a group that no coordinator describes is known.
    return is_set(groups["state"].combine_chunks()) & is_set(groups["members"].combine_chunks())


def _is_rebalanced(was: pa.Table, now: pa.Table, are_known: Bools) -> Bools:
    """Where the generation has changed; for a KIP-848 group with known owners, where it is Stable with other owners."""
    # A coordinator asked earlier reported the members but no generation, so a generation that becomes known is no news.
    is_rebalanced = _is_next_generation(was, now) & ~(are_known & ~is_set(was["generation"].combine_chunks()))
    is_kip848 = are_known & _is(was, "group_type", "consumer") & _is(now, "group_type", "consumer")
    is_stable = _is(now, "state", "Stable")
    for row in np.flatnonzero(is_kip848).tolist():
        # The partitions of a member are unknown while a topic id has no name.
        if not (_has_errors(was, row) or _has_errors(now, row)):
            is_rebalanced[row] = bool(is_stable[row]) and _held(was, row) != _held(now, row)
    return is_rebalanced


def _has_errors(groups: pa.Table, row: int) -> bool:
    errors = pc.struct_field(groups["members"][row].values, "error")
    return bool(errors.null_count < len(errors))


def _is(groups: pa.Table, column: str, value: str) -> Bools:
    return bools(pc.fill_null(pc.equal(groups[column].combine_chunks(), value), fill_value=False))


def _is_next_generation(was: pa.Table, now: pa.Table) -> Bools:
    generation = now["generation"].combine_chunks()
    return is_set(generation) & ~bools(pc.equal(generation, was["generation"].combine_chunks()))


def _is_moved_by_plan(was: pa.Table, now: pa.Table, where: Bools, targets: Targets) -> Bools:
    """Where members own what the plan wants, and did not before."""
    is_moved = np.zeros(len(where), np.bool_)
    for row in np.flatnonzero(where).tolist():
        target = targets(now["group_id"][row].as_py())
        if target is not None:
            is_moved[row] = _held(now, row) == _less_empty(target) != _held(was, row)
    return is_moved


def _held(groups: pa.Table, row: int) -> Holdings:
    members = groups["members"][row].as_py(maps_as_pydicts="strict")
    return _less_empty(
        {
            one["member_id"]: {
                topic: format_ranges(numbers) for topic, numbers in (one["assigned"] or {}).items()
            }
            for one in members
        }
    )


def _less_empty(holdings: Holdings) -> Holdings:
    held = {
        member_id: {topic: ranges for topic, ranges in topics.items() if ranges}
        for member_id, topics in holdings.items()
    }
    return {member_id: topics for member_id, topics in held.items() if topics}


def _state(was: pa.Table, now: pa.Table, due: Int64s) -> pa.Table:
    """State of the groups in these rows; for one that is gone, its name, its type and its offsets partition."""
    state = now.select(KNOWN).take(pa.array(due))
    for name in ("group_id", "group_type", "offsets_partition"):
        column = pc.coalesce(state[name], was[name].take(pa.array(due)))
        state = state.set_column(state.column_names.index(name), name, column)
    known = pa.array(_has_members(now)[due])
    members = pc.if_else(known, state["members"], pa.scalar(None, state["members"].type))
    return state.set_column(state.column_names.index("members"), "members", members)
