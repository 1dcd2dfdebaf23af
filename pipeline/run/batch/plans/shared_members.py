"""Groups that a broker's assignor could not tell apart: members of one carry the ids of members of another."""

from collections.abc import Mapping

import pyarrow.compute as pc

from pipeline.config.model import PlanConfig
from pipeline.planning.broker_reasons import member_shared
from pipeline.tables.store import Store

_IS_KIP848 = pc.field("group_type") == "consumer"


def shared_members(store: Store, config: PlanConfig) -> Mapping[str, str]:
    """Why groups whose plans a broker follows get none, by group: a member's id is in another such group, too.

    The broker tells its assignor members' ids, and no group's name. Since KIP-1082 clients choose their ids, and every
    reader of the control topic knows those of all groups: who borrows them would have its own plan move others'
    partitions.
    """
    if all(rule.follow != "broker" for rule in config.groups):
        return {}
    members = store.arrow("consumer_groups", ["group_id", "members"], _IS_KIP848)
    groups_of: dict[str, list[str]] = {}
    for group_id, held in zip(members["group_id"].to_pylist(), members["members"], strict=True):
        if config.for_group(group_id).follow == "broker":
            for member_id in {one["member_id"].as_py() for one in held}:
                groups_of.setdefault(member_id, []).append(group_id)
    return {
        group_id: member_shared(member_id, next(other for other in groups if other != group_id))
        for member_id, groups in sorted(groups_of.items())
        if len(groups) > 1
        for group_id in groups
    }
