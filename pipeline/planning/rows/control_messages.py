"""Plan: what followers and operators say, by group.

All of it fits on the driver: an acknowledgement for each member, one for each partition that was handed over since the
last rebalance, and one row of orders for each group that an operator has something to say about.
"""

from collections import defaultdict
from typing import Any, NamedTuple

import pyarrow as pa


class Moved(NamedTuple):
    """A partition that has left its owner within the present generation."""

    topic: str
    partition: int
    member_id: str | None
    """Its owner since; null while it is on its way, when nobody reads it."""


def acks_by_group(acks: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """Kind, member, epoch and cause of the acknowledgements of plans, by group.

    Args:
        acks: `fold.control_messages.about_plans`.
    """
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in acks.select(["group_id", "kind", "member_id", "epoch", "why"]).to_pylist():
        found[row["group_id"]].append(row)
    return found


def orders_by_group(orders: pa.Table) -> dict[str, dict[str, Any]]:
    """The row of each group.

    Args:
        orders: `schemas.ORDERS`.
    """
    return {row["group_id"]: row for row in orders.to_pylist()}


def moved_by_group(moved: pa.Table) -> dict[str, list[Moved]]:
    """The partitions of each group that have left their owner within the present generation.

    Args:
        moved: `fold.control_messages.HANDED_OVER`.
    """
    found: dict[str, list[Moved]] = defaultdict(list)
    for row in moved.to_pylist():
        found[row["group_id"]].append(Moved(row["topic"], row["partition"], row["member_id"]))
    return found
