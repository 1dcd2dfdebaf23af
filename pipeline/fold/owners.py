"""Fold: who has each partition, on the driver, for groups that are few."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.fold.step import OWNER

Place: TypeAlias = tuple[str, str, int]
"""Group, topic, partition."""
Owner: TypeAlias = tuple[Any, ...]
"""Values of the columns `step.OWNER`."""

_NUMBERS = {"generation", "offsets_partition"}
_OWNED = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        *((name, pa.int32() if name in _NUMBERS else pa.string()) for name in OWNER),
    ]
)


def count_assigned(members: pa.ChunkedArray) -> int:
    """How many partitions members were given, all together.

    Args:
        members: Column of `schemas.CONSUMER_GROUPS`.
    """
    assigned = pc.struct_field(pc.list_flatten(members), "assigned")
    return sum(pc.sum(pc.list_value_length(chunk.items)).as_py() or 0 for chunk in assigned.chunks)


def held_partitions(groups: pa.Table, moved: pa.Table) -> pa.Table:
    """One row per partition that a member of a classic group has, with the columns of its owner.

    As `step.assigned_partitions`, and as `control_messages.held_partitions` with what followers have handed over since.

    Args:
        groups: `schemas.CONSUMER_GROUPS`.
        moved: `control_messages.HANDED_OVER`.
    """
    members: dict[tuple[str, str], Owner] = {}
    owners: dict[Place, Owner] = {}
    for group in groups.select(["group_id", "generation", "offsets_partition", "members"]).to_pylist():
        # Of two that were given the same partition, the smaller member id.
        for member in sorted(group["members"] or (), key=lambda one: one["member_id"]):
            owner = members[group["group_id"], member["member_id"]] = tuple(
                (member | group)[name] for name in OWNER
            )
            for place in _assigned(group["group_id"], member):
                owners.setdefault(place, owner)
    _hand_over(owners, members, moved.to_pylist())
    rows = [dict(zip(_OWNED.names, (*place, *owner), strict=True)) for place, owner in owners.items()]
    return pa.Table.from_pylist(rows, schema=_OWNED)


def _assigned(group_id: str, member: Mapping[str, Any]) -> Iterator[Place]:
    # Arrow maps are lists of pairs.
    for topic, numbers in member["assigned"] or ():
        for number in numbers:
            yield group_id, topic, number


def _hand_over(
    owners: dict[Place, Owner], members: Mapping[tuple[str, str], Owner], moved: Iterable[Mapping[str, Any]]
) -> None:
    for one in moved:
        place = one["group_id"], one["topic"], one["partition"]
        new_owner = members.get((one["group_id"], one["member_id"]))
        if place in owners and new_owner is not None:
            owners[place] = new_owner
        else:
            # It is on its way.
            owners.pop(place, None)
