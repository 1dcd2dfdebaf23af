"""Members of a group that are known to follow plans, checked before a plan is approved."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from assignor.clients.plugin.membership import PLAN_ASSIGNOR
from pipeline.operate.output import Row, iterate
from pipeline.operate.serve.snapshot import Snapshot

_FOLLOWING, _REFUSED = ("accepted", "applied"), "refused"
_COLUMNS = ("kind", "epoch", "member_id", "acked_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """Number of a group's members that are known to follow plans."""

    is_by_broker: bool
    """The broker assigns the group: its assignor applies the plan, and no member has to."""
    lists_assignor: bool
    """The group selected the assignor that applies plans, which every member lists then."""
    count: int
    of: int
    missing: list[str]
    """Ids of members that the plan takes from or gives to, and that are not known to follow."""


def following(
    found: Snapshot, row: Row, members: Iterable[Row], moves: Iterable[Mapping[str, Any]]
) -> Following | None:
    """Which of the members that the moves of a waiting plan concern follow; None if the members are unknown.

    Raises:
        StoreError: The tables cannot be read.
    """
    ids = {one["member_id"] for one in members if one["member_id"] is not None}
    if not ids or row["member_count"] != len(ids):
        return None
    is_by_broker, lists_assignor = row["group_type"] == "consumer", row["assignor"] == PLAN_ASSIGNOR
    known = ids if is_by_broker or lists_assignor else ids & _acknowledging(found, row["group_id"])
    needed = {move[side] for move in moves for side in ("from", "to")} & ids
    return Following(
        is_by_broker=is_by_broker,
        lists_assignor=lists_assignor,
        count=len(known),
        of=len(ids),
        missing=sorted(needed - known),
    )


def _acknowledging(found: Snapshot, group_id: str) -> set[str]:
    """Members whose newest answer to a plan was no refusal; a void plan says nothing about the next one."""
    answers = pc.is_in(pc.field("kind"), value_set=pa.array([*_FOLLOWING, _REFUSED]))
    rows = found.read("acks", columns=_COLUMNS, where=(pc.field("group_id") == group_id) & answers)
    in_order = rows.sort_by([("epoch", "ascending"), ("acked_at", "ascending")])
    newest = {row["member_id"]: row["kind"] for row in iterate(in_order)}
    return {member_id for member_id, kind in newest.items() if kind in _FOLLOWING}
