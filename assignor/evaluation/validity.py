"""The check of every assignment: it trusts no strategy and shares no code with one.

Every test of a strategy ends here, and so does every target before it is published.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from assignor.errors import InvalidAssignmentError
from assignor.evaluation.balance import find_augmenting_path
from assignor.model.arrays import Bools, Int32s, Int64s
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.group import Group

Even: TypeAlias = Literal["no", "topic", "group", "optimal"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """Figures of a valid assignment."""

    counts: Int64s
    """Partitions of each of N members."""
    kept: int
    """Partitions whose owner, still subscribed, is also their target."""
    moves: int
    """Partitions whose target is not their holder, including those without a holder or without a target."""
    unassigned: int
    """Partitions without a member."""


def check(group: Group, assignment: Assignment, *, even: Even = "no") -> Verdict:
    """Figures of `assignment`, if it is valid and complete.

    Valid: a partition goes only to a member that subscribes to its topic. Complete: every partition has
    exactly one member or exactly one reason for having none, and "nobody subscribes" is the reason exactly where
    nobody subscribes. One entry per partition makes a second owner impossible.

    Args:
        group: The group that was assigned.
        assignment: The answer of a strategy.
        even: What the strategy promised besides: counts within one among the subscribers of each topic
            ("topic"), over the whole group ("group"), or as even over the group as its subscriptions allow
            ("optimal"): lexicographically least, sorted from the largest down.

    Raises:
        InvalidAssignmentError: Any rule is broken; all broken rules are named.
    """
    n = group.n_partitions
    if assignment.member.shape != (n,) or assignment.why.shape != (n,):
        raise InvalidAssignmentError((f"{n} partitions, but {len(assignment.member)} entries",))
    if (assignment.member >= group.n_members).any() or (assignment.member < -1).any():
        raise InvalidAssignmentError((f"member index outside -1 .. {group.n_members - 1}",))
    may_read = _may_read(group)
    rules = {
        "does not subscribe, but gets": _reads_unsubscribed(group, assignment, may_read),
        "no member and no reason for": (assignment.member < 0) & (assignment.why == Unassigned.ASSIGNED),
        "a member and a reason to have none for": (assignment.member >= 0) & (assignment.why != 0),
        "wrong about whether anybody subscribes to": _wrong_about_readers(group, assignment, may_read),
    }
    problems = [f"{words} {_first(group, broken)}" for words, broken in rules.items() if broken.any()]
    problems += _uneven(group, assignment, may_read, even=even)
    if problems:
        raise InvalidAssignmentError(tuple(problems))
    return _verdict(group, assignment)


def _verdict(group: Group, assignment: Assignment) -> Verdict:
    member, holder = assignment.member, group.ownership.holder
    return Verdict(
        counts=np.bincount(member[member >= 0], minlength=group.n_members),
        kept=int(((member >= 0) & (member == group.owner)).sum()),
        moves=int((member != holder).sum()),
        unassigned=int((member < 0).sum()),
    )


def _may_read(group: Group) -> Bools:
    """T x N: does the member subscribe to the topic."""
    # A dense table: strategies work on subscriber sets, and a mistake with those must not be repeated here.
    table = np.zeros((group.topics.n_topics, group.n_members), np.bool_)
    for t in range(group.topics.n_topics):
        table[t, group.subscriptions.of_topic(t)] = True
    return table


def _reads_unsubscribed(group: Group, assignment: Assignment, may_read: Bools) -> Bools:
    broken = np.zeros(group.n_partitions, np.bool_)
    assigned = np.nonzero(assignment.member >= 0)[0]
    broken[assigned] = ~may_read[group.topics.topic_of[assigned], assignment.member[assigned]]
    return broken


def _wrong_about_readers(group: Group, assignment: Assignment, may_read: Bools) -> Bools:
    claimed_unread = assignment.why == Unassigned.NOBODY_SUBSCRIBES
    unread = np.logical_not(may_read.any(axis=1))
    wrong: Bools = claimed_unread != unread[group.topics.topic_of]
    return wrong


def _uneven(group: Group, assignment: Assignment, may_read: Bools, *, even: Even) -> list[str]:
    assigned = np.nonzero(assignment.member >= 0)[0]
    if even == "no" or len(assigned) == 0:
        return []
    topic, member = group.topics.topic_of[assigned], assignment.member[assigned]
    if even == "topic":
        return _uneven_in_topics(group, topic, member, may_read)
    counts = np.bincount(member, minlength=group.n_members)
    if even == "group":
        return [] if np.ptp(counts) <= 1 else [f"counts from {counts.min()} to {counts.max()}"]
    # Counts within one are not always possible; that no augmenting path is left is the certificate.
    holds = np.zeros_like(may_read)
    holds[topic, member] = True
    path = find_augmenting_path(holds, may_read, counts)
    if path is None:
        return []
    short = f"{group.member_ids[path.to_member]} with {counts[path.to_member]}"
    return [f"counts less even than possible: a member with {path.count} could hand on towards {short}"]


def _uneven_in_topics(group: Group, topic: Int32s, member: Int32s, may_read: Bools) -> list[str]:
    problems = []
    for t, name in enumerate(group.topics.names):
        counts = np.bincount(member[topic == t], minlength=group.n_members)[may_read[t]]
        if len(counts) > 0 and np.ptp(counts) > 1:
            problems.append(f"counts of topic {name} from {counts.min()} to {counts.max()}")
    return problems


def _first(group: Group, broken: Bools) -> str:
    return f"{group.topics.name(int(np.argmax(broken)))} ({int(broken.sum())} partition(s))"
