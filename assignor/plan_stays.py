"""Partitions that no plan may take from their owner: pinned ones, and those that were moved too lately or too often."""

import re
from collections.abc import Mapping

import numpy as np

from assignor.arrays import Bools
from assignor.assignment import Assignment, Unassigned
from assignor.group import Group
from assignor.handover import of_their_numbers
from assignor.plan_guards import Guards
from assignor.plan_state import GroupState
from assignor.verify import check

DAY_MS = 86_400_000


def pinned(group: Group, patterns: tuple[str, ...], ordered: Mapping[str, tuple[int, ...]]) -> Bools:
    """P entries: is the partition pinned, by a pattern of topics or by an operator's order.

    Args:
        group: Whose partitions.
        patterns: Of topics whose partitions stay where they are.
        ordered: Partitions by topic; an empty tuple is all of them (`protocol.commands.Orders.pinned`).
    """
    topics = group.topics
    stays = np.zeros(group.n_partitions, np.bool_)
    for t, name in enumerate(topics.names):
        if any(re.fullmatch(pattern, name) for pattern in patterns) or ordered.get(name) == ():
            stays[topics.topic_of == t] = True
        elif name in ordered:
            stays[(topics.topic_of == t) & np.isin(topics.number_of, ordered[name])] = True
    return stays & (group.owner >= 0)


def resting(group: Group, guards: Guards, state: GroupState, *, now_ms: int) -> Bools:
    """P entries: was the partition moved too lately, or too often today, to be moved again."""
    topics = group.topics
    tired = [
        name
        for name, times in state.moved_at_ms.items()
        if now_ms - times[-1] < guards.partition_rest_ms
        or sum(now_ms - at_ms < DAY_MS for at_ms in times) >= guards.partition_moves_per_day
    ]
    index, places = topics.index(), [name.rpartition(":") for name in tired]
    pids = topics.pids(
        np.array([index.get(topic, -1) for topic, _, _ in places], np.int64),
        np.array([int(number) for _, _, number in places], np.int64),
    )
    stays = np.zeros(group.n_partitions, np.bool_)
    stays[pids[pids >= 0]] = True
    return stays & (group.owner >= 0)


def kept(group: Group, target: Assignment, stays: Bools, *, by_number: bool) -> Assignment:
    """The target, less the moves of partitions that have to stay.

    Args:
        group: With the owners.
        target: Complete and valid.
        stays: P entries; only partitions that have an owner.
        by_number: Where a partition stays, so do all of its number: the strategy joins topics (KIP-315).
    """
    if by_number:
        stays = of_their_numbers(group, stays) & (group.owner >= 0)
    count = int((stays & (target.member != group.owner)).sum())
    if count == 0:
        return target
    held = Assignment(
        member=np.where(stays, group.owner, target.member),
        why=np.where(stays, np.int8(Unassigned.ASSIGNED), target.why),
        remarks=(*target.remarks, f"{count} partitions stay that would move: pinned, or moved lately"),
    )
    check(group, held)
    return held
