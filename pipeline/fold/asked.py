"""Fold: what coordinators were asked for in a batch, and what follows for what is stored.

A coordinator that answers gives all commits of a group: what it does not name is gone, unless this user may not see its
topic. What is kept for that, or because no coordinator answers, stays with the reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools
from pipeline.arrow_columns import bools
from pipeline.row_keys import LAG_KEY, NO_ROW, PARTITION_KEY, codes, looked_up

UNNAMED = (
    "its coordinator no longer returns this commit, and the brokers say nothing about the partition: the commit may "
    "be gone, or this user may not see its topic"
)
"""Why a commit is in doubt though the group's coordinator has answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The groups that a batch has asked for; it goes to the tasks."""

    answered: Sequence[str] = ()
    """Groups with a complete answer of their coordinator."""
    unanswered: Mapping[str, str] = field(default_factory=dict)
    """Why the present state of a group is unknown, by group."""
    unwanted: Sequence[str] = ()
    """Topics whose commits lagwise no longer reads."""


NOBODY = Asked()
"""No answers: for commits from the offsets topic, and for a batch that runs again."""


def with_absent(stored: pa.Table, commits: pa.Table, asked: Asked, logs: pa.Table) -> pa.Table:
    """Return the commits, with a tombstone for each stored one that its coordinator no longer returns.

    Args:
        stored: `schemas.PARTITION_LAG`.
        commits: Decoded rows of kind 'commit'.
        asked: See `Asked`.
        logs: `error` and `deleted_at` of `schemas.TOPIC_OFFSETS`. Coordinators omit what this user may not see, so a
            partition that the brokers do not report keeps its commit.
    """
    if not asked.answered:
        return commits
    own, named = codes(LAG_KEY, stored, commits)
    wanted, known = codes(PARTITION_KEY, stored, logs)
    log = looked_up(wanted, known)
    is_told = pc.or_(pc.is_null(logs["error"]), pc.is_valid(logs["deleted_at"]))
    is_seen = pc.fill_null(is_told.take(pa.array(log, mask=log == NO_ROW)), fill_value=False)
    is_absent = (
        is_answered(stored["group_id"].combine_chunks(), asked)
        & (looked_up(own, named) == NO_ROW)
        & (bools(is_seen.combine_chunks()) | _is_one_of(stored["topic"], asked.unwanted))
        & bools(pc.is_valid(stored["committed_offset"]).combine_chunks())
    )
    gone = stored.select(LAG_KEY).filter(pa.array(is_absent))
    gone = gone.append_column("row_kind", pa.repeat("tombstone", gone.num_rows))
    return pa.concat_tables([commits, gone], promote_options="permissive")


def why_unanswered(groups: pa.Array, asked: Asked) -> pa.Array:
    """Return why each of these groups has no current answer; null if it has one."""
    names = pa.array(list(asked.unanswered), pa.string())
    reasons = pa.array(list(asked.unanswered.values()), pa.string())
    return reasons.take(pc.index_in(groups, value_set=names))


def standing(groups: pa.Array, asked: Asked, *, is_unnamed: Bools) -> tuple[Bools, pa.Array]:
    """Return which rows belong to groups with an answer, and why a row is still in doubt; null if it is not.

    `is_unnamed` are rows with a commit that no coordinator has returned in this batch.
    """
    if asked == NOBODY:
        return np.zeros(len(groups), np.bool_), pa.nulls(len(groups), pa.string())
    has_answer = is_answered(groups, asked)
    unnamed = pc.if_else(pa.array(has_answer & is_unnamed), UNNAMED, pa.scalar(None, pa.string()))
    return has_answer, pc.coalesce(why_unanswered(groups, asked), unnamed)


def is_answered(groups: pa.Array, asked: Asked) -> Bools:
    """Return which of these groups have an answer."""
    return bools(pc.is_in(groups, value_set=pa.array(asked.answered, pa.string())))


def _is_one_of(topics: pa.ChunkedArray, names: Sequence[str]) -> Bools:
    return bools(pc.is_in(topics, value_set=pa.array(names, pa.string())).combine_chunks())


def marked(groups: pa.Table, asked: Asked) -> pa.Table:
    """Return the groups; those without an answer are unconfirmed, with the reason."""
    why = why_unanswered(groups["group_id"].combine_chunks(), asked)
    columns = {
        "confirmed": pc.and_(groups["confirmed"].combine_chunks(), pc.is_null(why)),
        "unconfirmed_reason": pc.coalesce(why, groups["unconfirmed_reason"].combine_chunks()),
    }
    for name, column in columns.items():
        groups = groups.set_column(groups.column_names.index(name), name, column)
    return groups
