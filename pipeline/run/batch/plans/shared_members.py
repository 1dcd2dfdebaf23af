"""Groups that a broker's assignor could not tell apart: members of one carry the ids of members of another."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.model import PlanConfig
from pipeline.planning.broker_reasons import member_shared
from pipeline.tables.store import Store

_IS_KNOWN = (pc.field("group_type") == "consumer") & pc.field("members").is_valid()


def shared_members(store: Store, config: PlanConfig) -> Mapping[str, str]:
    """Why groups whose plans a broker follows get none, by group: a member's id is in another such group, too.

    The broker tells its assignor the ids of members, and no group's name. Since KIP-1082 clients choose their ids, and
    every reader of the control topic knows those of all groups: a group that reuses them could have its plan applied to
    another group's partitions.
    """
    if all(rule.follow != "broker" for rule in config.groups):
        return {}
    groups_of: dict[str, set[str]] = {}
    for group_id, member_id in _members(store.arrow("consumer_groups", ["group_id", "members"], _IS_KNOWN)):
        groups_of.setdefault(member_id, set()).add(group_id)
    found: dict[str, str] = {}
    followed: dict[str, bool] = {}
    for member_id, groups in sorted((one, groups) for one, groups in groups_of.items() if len(groups) > 1):
        for group_id in groups - followed.keys():
            own = config.for_group(group_id)
            followed[group_id] = own.follow == "broker" and not own.exclude
        mistakable = sorted(group_id for group_id in groups if followed[group_id])
        for group_id in mistakable if len(mistakable) > 1 else ():
            other = next(one for one in mistakable if one != group_id)
            found.setdefault(group_id, member_shared(member_id, other))
    return found


def _members(groups: pa.Table) -> Iterator[tuple[str, str]]:
    """Group and member id of every member."""
    members = groups["members"].combine_chunks()
    group_ids = groups["group_id"].take(pc.list_parent_indices(members))
    member_ids = pc.struct_field(pc.list_flatten(members), "member_id")
    yield from zip(group_ids.to_pylist(), member_ids.to_pylist(), strict=True)
