"""A published target that is not reached yet: it is finished, not planned anew.

Source: the pinned target of `lag-sticky`; Kafka's cooperative protocol (KIP-429), where a target stays as it is from
one step to the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assignor.errors import AbstainError, AssignorError
from assignor.evaluation.validity import check
from assignor.model.arrays import Bools, Int32s, Int64s
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.group import Group
from assignor.protocol.ranges import parse_ranges
from pipeline.planning.state import PlanState, Ranges, place


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Way:
    """Where a group is on its way to a target."""

    target: Assignment
    moves: int
    """Partitions that change hands by the plan."""
    done: int
    """The same less the partitions that are not where they belong; below 0 in a group that was rebalanced."""
    is_off: bool
    """Some partition is with a member that the plan gives no reason for: the group was rebalanced."""
    is_between: bool
    """Some partition is on its way from one member to another."""
    left: frozenset[str]
    """Places (`state.place`) that are still with the member that the plan takes them from."""

    @property
    def is_there(self) -> bool:
        """Every partition is where it belongs."""
        return self.done == self.moves


def way_of(group: Group, plan: PlanState) -> Way | None:
    """Where the group is on its way to the plan's target.

    None when the target is none of this group any more: other members, other partitions, another subscription.
    """
    try:
        target = _target(group, plan)
    except AssignorError:
        return None
    holder = group.ownership.holder
    giver = _members(group, plan.gives)
    there: Bools = holder == target.member
    between: Bools = (holder < 0) & (target.member >= 0)
    left: Bools = ~there & (giver >= 0) & (holder == giver)
    on_way: Bools = there | between | left
    return Way(
        target=target,
        moves=plan.moves,
        done=plan.moves - int((~there).sum()),
        is_off=not bool(on_way.all()),
        is_between=bool(between.any()),
        left=frozenset(_places(group, left)),
    )


def _target(group: Group, plan: PlanState) -> Assignment:
    """The target in this group's terms.

    Raises:
        AssignorError: It is none for this group.
    """
    if set(plan.target) != set(group.member_ids):
        raise AbstainError("the plan is about other members")
    whole = Assignment.complete(group, _members(group, plan.target))
    index, why = group.topics.index(), whole.why
    for reason in Unassigned:
        for topic, ranges in plan.unassigned.get(reason.words, {}).items():
            why[_pids(group, index.get(topic, -1), ranges)] = reason
    target = Assignment(member=whole.member, why=why)
    check(group, target)
    return target


def _members(group: Group, placed: Ranges) -> Int32s:
    """Member index of each partition, -1 for those that are not named.

    Raises:
        AssignorError: There is no such partition.
    """
    member = np.full(group.n_partitions, -1, np.int32)
    index = group.topics.index()
    for number, member_id in enumerate(group.member_ids):
        for topic, ranges in placed.get(member_id, {}).items():
            member[_pids(group, index.get(topic, -1), ranges)] = number
    return member


def _places(group: Group, chosen: Bools) -> Iterator[str]:
    topics = group.topics
    for pid in np.flatnonzero(chosen).tolist():
        yield place(topics.names[topics.topic_of[pid]], int(topics.number_of[pid]))


def _pids(group: Group, topic: int, ranges: str) -> Int64s:
    """The partitions of a topic, -1 for an unknown one, that the ranges name.

    Raises:
        AssignorError: One of them is not there.
    """
    partitions = np.array(parse_ranges(ranges, at_most=group.n_partitions), np.int64)
    pids = group.topics.partition_indices(np.full(len(partitions), topic, np.int64), partitions)
    if (pids < 0).any():
        raise AbstainError("the plan names partitions that are not there")
    return pids
