"""Fold: who has each partition."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Int64s
from pipeline.arrow_columns import is_set
from pipeline.row_keys import LAG_KEY, NO_ROW, codes, last_of_each, looked_up

OWNER = ("member_id", "group_instance_id", "client_id", "client_host", "generation", "offsets_partition")

_OF_MEMBER = OWNER[:4]
_OF_GROUP = ("group_id", *OWNER[4:])


def assigned_topics(groups: pa.Table) -> pa.Table:
    """Return column `topic`: the topics with partitions assigned to members."""
    maps = _copied(pc.struct_field(pc.list_flatten(groups["members"].combine_chunks()), "assigned"))
    return pa.table({"topic": maps.keys.unique()})


def left_groups(groups: pa.Table) -> pa.Table:
    """Return `group_id` and `group_position` of groups that all members have left: since then none of them commits.

    Args:
        groups: `schemas.CONSUMER_GROUPS`.
    """
    return groups.filter(pc.equal(groups["state"], "Empty")).select(["group_id", "group_position"])


def held_partitions(groups: pa.Table, moved: pa.Table, topics: pa.Array) -> pa.Table:
    """Return one row per partition that a member of a classic group owns, with the columns of its owner.

    Owners come from the leader's assignment and from hand-overs of followers since then; claims do not count.
    If the leader assigned a partition to two members of one generation (a fault of its assignor), the smaller member id
    wins.

    Args:
        groups: `schemas.CONSUMER_GROUPS`.
        moved: `control_messages.HANDED_OVER`.
        topics: Topics to include.
    """
    members = _members(groups)
    places, owner = _assigned(members, topics)
    own, handed = codes(LAG_KEY, places, moved)
    # Ranks by member id, the smallest highest.
    ranks = np.empty(members.num_rows, np.int64)
    by_id = pc.array_sort_indices(members["member_id"].combine_chunks(), order="descending")
    ranks[by_id.to_numpy()] = np.arange(members.num_rows)
    first = last_of_each(own, ranks[owner])
    owner = owner[first]
    after = looked_up(own[first], handed)
    new_owner = np.append(_new_owners(members, moved), NO_ROW)
    owner = np.where(after == NO_ROW, owner, new_owner[after])
    # A partition that has left its owner, and that no member has taken, is on its way.
    is_held = owner != NO_ROW
    rows = places.take(pa.array(first[is_held]))
    of = members.select(OWNER).take(pa.array(owner[is_held]))
    for name in OWNER:
        rows = rows.append_column(name, of[name])
    return rows


def _members(groups: pa.Table) -> pa.Table:
    """One row per member, with its group, what the group says of it, and what it was `assigned`."""
    lists = groups["members"].combine_chunks()
    flat, group = pc.list_flatten(lists), pc.list_parent_indices(lists)
    return pa.table(
        {
            **{name: groups[name].combine_chunks().take(group) for name in _OF_GROUP},
            **{name: pc.struct_field(flat, name) for name in (*_OF_MEMBER, "assigned")},
        }
    )


def _assigned(members: pa.Table, topics: pa.Array) -> tuple[pa.Table, Int64s]:
    """The partitions of the topics that members were given, by `LAG_KEY`, and each one's row of `members`."""
    maps = _copied(members["assigned"].combine_chunks())
    lengths = np.diff(maps.offsets.to_numpy())
    member = np.repeat(np.arange(members.num_rows), lengths)
    which = pc.list_parent_indices(maps.items).to_numpy()
    is_wanted = pc.is_in(maps.keys, value_set=topics).to_numpy(zero_copy_only=False)[which]
    which = which[is_wanted]
    owner = member[which]
    places = {
        "group_id": members["group_id"].combine_chunks().take(pa.array(owner)),
        "topic": maps.keys.take(pa.array(which)),
        "partition": pc.list_flatten(maps.items).filter(pa.array(is_wanted)),
    }
    return pa.table(places), owner


def _new_owners(members: pa.Table, moved: pa.Table) -> Int64s:
    """The row of `members` of each that has taken a partition; `NO_ROW` where it is on its way."""
    taken = moved.filter(pc.is_valid(moved["member_id"]))
    rows = np.full(moved.num_rows, NO_ROW, np.int64)
    rows[is_set(moved["member_id"])] = looked_up(*codes(("group_id", "member_id"), taken, members))
    return rows


def _copied(maps: pa.MapArray) -> pa.MapArray:
    # So that the topics and their partitions begin where the column does.
    return maps.take(pa.array(np.arange(len(maps))))
