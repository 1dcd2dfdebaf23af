"""Frozen partitions, which no plan may revoke: pinned ones, and those that cool down after a move."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from assignor.evaluation.validity import check
from assignor.model.arrays import Bools
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.group import Group
from pipeline.name_filter import NameFilter
from pipeline.planning import reasons
from pipeline.planning.guards import Guards
from pipeline.planning.state import GroupState

DAY_MS = 86_400_000


def pinned(group: Group, patterns: tuple[str, ...], ordered: Mapping[str, tuple[int, ...]]) -> Bools:
    """P entries: is the partition pinned, by a topic pattern of the configuration or by an operator's order.

    Args:
        group: Whose partitions.
        patterns: Topics whose partitions stay where they are.
        ordered: Partitions by topic; an empty tuple is all of them (`protocol.commands.Orders.pinned`).
    """
    topics = group.topics
    frozen = np.zeros(group.n_partitions, np.bool_)
    by_pattern = NameFilter(patterns)
    for t, name in enumerate(topics.names):
        if by_pattern.admits(name) or ordered.get(name) == ():
            frozen[topics.topic_of == t] = True
        elif name in ordered:
            frozen[(topics.topic_of == t) & np.isin(topics.number_of, ordered[name])] = True
    return frozen & (group.owner >= 0)


def cooling_down(group: Group, guards: Guards, state: GroupState, *, now_ms: int) -> Bools:
    """P entries: was the partition moved too recently, or too often in a day, to be moved again."""
    topics = group.topics
    names = [
        name
        for name, times in state.moved_at_ms.items()
        if now_ms - times[-1] < guards.partition_rest_ms
        or sum(now_ms - at_ms < DAY_MS for at_ms in times) >= guards.partition_moves_per_day
    ]
    index, keys = topics.index(), [name.rpartition(":") for name in names]
    indices = topics.partition_indices(
        np.array([index.get(topic, -1) for topic, _, _ in keys], np.int64),
        np.array([int(number) for _, _, number in keys], np.int64),
    )
    frozen = np.zeros(group.n_partitions, np.bool_)
    frozen[indices[indices >= 0]] = True
    return frozen & (group.owner >= 0)


def with_frozen(group: Group, target: Assignment, frozen: Bools, *, by_number: bool) -> Assignment:
    """The target without the moves of frozen partitions.

    Args:
        group: With the owners.
        target: Complete and valid.
        frozen: P entries: partitions that must keep their owner; only those that have one.
        by_number: The strategy joins topics (KIP-315): partitions of the same number follow the one that stays to
            its owner. If they stay with several owners, none of the number moves.
    """
    if not (frozen & (target.member != group.owner)).any():
        return target
    held = _with_partners(group, target, frozen) if by_number else _in_place(group, target, frozen)
    count = int(((held.member == group.owner) & (target.member != group.owner) & (group.owner >= 0)).sum())
    held = replace(
        held,
        remarks=(*target.remarks, reasons.frozen(count)),
    )
    check(group, held)
    return held


def _in_place(group: Group, target: Assignment, frozen: Bools) -> Assignment:
    return Assignment(
        member=np.where(frozen, group.owner, target.member),
        why=np.where(frozen, np.int8(Unassigned.ASSIGNED), target.why),
    )


def _with_partners(group: Group, target: Assignment, frozen: Bools) -> Assignment:
    number, n_numbers = group.topics.number_of, int(group.topics.counts.max(initial=0))
    first = np.full(n_numbers, group.n_members, np.int32)
    last = np.full(n_numbers, -1, np.int32)
    np.minimum.at(first, number[frozen], group.owner[frozen])
    np.maximum.at(last, number[frozen], group.owner[frozen])
    held = _in_place(group, target, frozen | ((last > first)[number] & (group.owner >= 0)))
    has_place = (target.why == Unassigned.ASSIGNED) | (target.why == Unassigned.OWNER_DOES_NOT_READ)
    follows = (last == first)[number] & ~frozen & has_place
    reads = group.subscriptions.allows(group.topics.topic_of, last[number])
    held = Assignment(
        member=np.where(follows, last[number], held.member),
        why=np.where(follows, np.int8(Unassigned.ASSIGNED), held.why),
    )
    return held.without(follows & ~reads, why=Unassigned.OWNER_DOES_NOT_READ)
