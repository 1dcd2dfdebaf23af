"""Fold: the members of many groups as one table, so that groups are compared at once and not one by one."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools, Int64s

MEMBER_KEY = ("group", "identity")


def members_of(groups: pa.Table, where: Bools) -> pa.Table:
    """Return one row per member of the groups under the mask, by `MEMBER_KEY`, with `member_id` and `topics`."""
    rows = np.flatnonzero(where)
    lists = groups["members"].combine_chunks().take(pa.array(rows))
    flat = pc.list_flatten(lists)
    member_id, instance = (pc.struct_field(flat, name) for name in ("member_id", "group_instance_id"))
    # By the letter an instance is told from a member whose id is that text.
    identity = pc.coalesce(
        pc.binary_join_element_wise("i", instance, ""), pc.binary_join_element_wise("m", member_id, "")
    )
    return pa.table(
        {
            "group": pa.array(rows[pc.list_parent_indices(lists).to_numpy()], pa.int64()),
            "identity": identity,
            "member_id": member_id,
            "topics": pc.struct_field(flat, "topics"),
        }
    )


def with_known_members(groups: pa.Table) -> pa.Table:
    """Return the groups with null `members` for those whose members are unknown.

    Args:
        groups: With `group_type`, `state` and `members` of `schemas.CONSUMER_GROUPS`; versions before 0.2 wrote an
            empty list for unknown members, and no state.
    """
    # None seen is not none, where only the group's own record was read.
    is_known = pc.or_kleene(
        pc.or_kleene(pc.equal(groups["group_type"], "classic"), pc.is_valid(groups["state"])),
        pc.greater(pc.list_value_length(groups["members"]), 0),
    )
    none = pa.scalar(None, groups["members"].type)
    known = pc.if_else(pc.fill_null(is_known, fill_value=False), groups["members"], none)
    return groups.set_column(groups.column_names.index("members"), groups.schema.field("members"), known)


def lists_differ(lists: pa.ListArray, others: pa.ListArray) -> Bools:
    """Return where two list columns differ in texts or order; null counts as an empty list."""
    lengths, other_lengths = (
        pc.fill_null(pc.list_value_length(one), 0).to_numpy() for one in (lists, others)
    )
    differ: Bools = lengths != other_lengths
    same = np.flatnonzero(~differ)
    texts, other_texts = (pc.list_flatten(one.take(pa.array(same))) for one in (lists, others))
    is_other = pc.not_equal(texts, other_texts).to_numpy(zero_copy_only=False).astype(bool)
    differ[np.repeat(same, lengths[same])[is_other]] = True
    return differ


def grouped(members: pa.Table, rows: Int64s) -> dict[int, list[str]]:
    """The member ids in these rows of `members_of`, by `group`, sorted."""
    found: dict[int, list[str]] = {}
    chosen = members.select(["group", "member_id"]).take(pa.array(rows))
    for group, member_id in zip(*(column.to_pylist() for column in chosen.columns), strict=True):
        found.setdefault(group, []).append(member_id)
    return {group: sorted(member_ids) for group, member_ids in found.items()}
