"""Progress of a group towards a published target: a plan under way is finished before the next one is made.

Source: the pinned target of `lag-sticky`; Kafka's cooperative protocol (KIP-429), where a target stays as it is from
one step to the next.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from assignor.errors import AbstainError, AssignorError
from assignor.evaluation.validity import check
from assignor.model.arrays import Bools, Int32s, Int64s
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.group import Group
from assignor.model.topics import Topics
from assignor.protocol.ranges import parse_ranges
from pipeline.planning.record import readers
from pipeline.planning.state import PlanState, Ranges, partition_key

_MOST_PARTITIONS = 1_000_000
"""More than any group has."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanProgress:
    """Progress of a group towards a target."""

    target: Assignment
    moves: int
    """Partitions whose owner the plan changes."""
    done: int
    """`moves` less the partitions that are not at their target; may be negative after a rebalance."""
    is_off: bool
    """Some partition is with a member that is neither its old nor its new owner: the group was rebalanced."""
    is_between: bool
    """Some partition has no owner now: it is handed over from one member to another."""
    left: Callable[[], frozenset[str]]
    """Partitions (`state.partition_key`) that are still with the member that the plan revokes them from."""

    @property
    def is_there(self) -> bool:
        """Return whether every partition is at its target."""
        return self.done == self.moves


def progress_of(group: Group, plan: PlanState, *, by_broker: bool = False) -> PlanProgress | None:
    """Return the group's progress towards the plan's target.

    None if the target no longer fits the group: other members, partitions or subscriptions.

    Args:
        group: As it is now.
        plan: Its newest one.
        by_broker: The broker assigns the group: members that read nothing may come and go.
    """
    placed = of_readers(group, plan.target) if by_broker else plan.target
    try:
        target = assignment_of(group, placed, plan.unassigned)
    except AssignorError:
        return None
    holder = group.ownership.holder
    revoked_from = members_of(group, plan.revoked)
    there: Bools = holder == target.member
    between: Bools = (holder < 0) & (target.member >= 0)
    left: Bools = ~there & (revoked_from >= 0) & (holder == revoked_from)
    explained: Bools = there | between | left
    return PlanProgress(
        target=target,
        moves=plan.moves,
        done=plan.moves - int((~there).sum()),
        is_off=not bool(explained.all()),
        is_between=bool(between.any()),
        left=partial(_places, group, left),
    )


def of_readers(group: Group, by_member: Ranges) -> Ranges:
    """The target with the members of now that read nothing, less those that have left and that it gives nothing."""
    kept = {name: topics for name, topics in by_member.items() if topics or name in group.member_ids}
    return kept | {name: {} for name in set(group.member_ids) - readers(group)}


def assignment_of(group: Group, by_member: Ranges, unassigned: Ranges) -> Assignment:
    """A plan's target as arrays of this group.

    Args:
        group: As it is now.
        by_member: See `PlanState.target`.
        unassigned: See `PlanState.unassigned`.

    Raises:
        AssignorError: It does not fit the group.
    """
    if set(by_member) != set(group.member_ids):
        raise AbstainError("the plan was made for other members")
    whole = Assignment.complete(group, members_of(group, by_member))
    why = whole.why
    for reason in Unassigned if unassigned else ():
        if named := unassigned.get(reason.words):
            why[_partition_indices(group, list(named.items()))[0]] = reason
    if ((why == Unassigned.NOBODY_TAKES) & (group.owner >= 0)).any():
        # Brought back, such a plan would take a partition from its reader.
        raise AbstainError("the plan leaves to nobody what a member has now")
    target = Assignment(member=whole.member, why=why)
    check(group, target, closed_known=False)
    return target


def members_of(group: Group, placed: Ranges) -> Int32s:
    """Member index of each partition, -1 for those that are not named, or with members that have left.

    Raises:
        AssignorError: A partition does not exist.
    """
    named = [
        (number, topic, ranges)
        for number, member_id in enumerate(group.member_ids)
        for topic, ranges in placed.get(member_id, {}).items()
    ]
    partitions, counts = _partition_indices(group, [(topic, ranges) for _, topic, ranges in named])
    member = np.full(group.n_partitions, -1, np.int32)
    # If a partition is named twice, the last one counts.
    member[partitions] = np.repeat(np.array([number for number, *_ in named], np.int32), counts)
    return member


def former_members_of(group: Group, placed: Ranges) -> Int32s:
    """`members_of` a plan of before: partitions that do not exist any more are left out."""
    member = np.full(group.n_partitions, -1, np.int32)
    for number, member_id in enumerate(group.member_ids):
        member[left_of(group.topics, placed.get(member_id, {}))] = number
    return member


def left_of(topics: Topics, named: Mapping[str, str]) -> Int64s:
    """The partitions that still exist of those that were named, topic -> ranges, maybe for a larger group."""
    index = topics.index()
    numbers = {topic: parse_ranges(ranges, at_most=_MOST_PARTITIONS) for topic, ranges in named.items()}
    topic = np.repeat(
        np.array([index.get(name, -1) for name in numbers], np.int64), [len(of) for of in numbers.values()]
    )
    number = np.fromiter(chain.from_iterable(numbers.values()), np.int64, len(topic))
    found = topics.partition_indices(topic, number)
    left: Int64s = found[found >= 0]
    return left


def _places(group: Group, chosen: Bools) -> frozenset[str]:
    topics = group.topics
    return frozenset(
        partition_key(topics.names[topics.topic_of[index]], int(topics.number_of[index]))
        for index in np.flatnonzero(chosen).tolist()
    )


def _partition_indices(group: Group, named: Sequence[tuple[str, str]]) -> tuple[Int64s, list[int]]:
    """The partitions that these topics with ranges name, and how many each names.

    Raises:
        AssignorError: One of them does not exist.
    """
    index, most = group.topics.index(), group.n_partitions
    numbers = [parse_ranges(ranges, at_most=most) for _, ranges in named]
    counts = [len(partitions) for partitions in numbers]
    topic = np.repeat(np.array([index.get(topic, -1) for topic, _ in named], np.int64), counts)
    number = np.fromiter(chain.from_iterable(numbers), np.int64, len(topic))
    indices = group.topics.partition_indices(topic, number)
    if (indices < 0).any():
        raise AbstainError("the plan names partitions that do not exist")
    return indices, counts
