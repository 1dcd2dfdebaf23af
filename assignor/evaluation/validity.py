"""The check of every assignment: it trusts no strategy and shares no code with one.

Every test of a strategy ends here, and so does every target before it is published.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from assignor.errors import InvalidAssignmentError
from assignor.evaluation.balance import find_augmenting_path
from assignor.model.arrays import Bools, Int32s, Int64s
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.group import Group

Even: TypeAlias = Literal["no", "topic", "group", "optimal"]

# As numbers: to look up an enum's member, and for numpy to take it for one, takes longer than to compare sixty with it.
_NOBODY_SUBSCRIBES, _NOBODY_TAKES = int(Unassigned.NOBODY_SUBSCRIBES), int(Unassigned.NOBODY_TAKES)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """Figures of a valid assignment, worked out when they are asked for: planning only checks."""

    group: Group
    assignment: Assignment

    @property
    def counts(self) -> Int64s:
        """Partitions of each of N members."""
        member = self.assignment.member
        return np.bincount(member[member >= 0], minlength=self.group.n_members)

    @property
    def kept(self) -> int:
        """Partitions whose owner, still subscribed, is also their target."""
        member = self.assignment.member
        return int(((member >= 0) & (member == self.group.owner)).sum())

    @property
    def moves(self) -> int:
        """Partitions whose target is not their holder, including those without a holder or without a target."""
        return int((self.assignment.member != self.group.ownership.holder).sum())

    @property
    def unassigned(self) -> int:
        """Partitions without a member."""
        return int((self.assignment.member < 0).sum())


def check(group: Group, assignment: Assignment, *, even: Even = "no", closed_known: bool = True) -> Verdict:
    """Return figures of `assignment` if it is valid and complete.

    Valid: a partition goes only to a member that subscribes to its topic. Complete: every partition has
    exactly one member or exactly one reason for having none, and "nobody subscribes" is the reason exactly where
    nobody subscribes. One entry per partition makes a second owner impossible. What is fixed, and what a closed member
    owns, is where it was, and a closed member has nothing else.

    Args:
        group: The group that was assigned.
        assignment: The answer of a strategy.
        even: Further promise of the strategy: counts within one among the subscribers of each topic
            ("topic"), over the whole group ("group"), or as even over the group as its subscriptions allow
            ("optimal"): lexicographically least, sorted from the largest down. With something fixed, "topic" is: nobody
            has a partition that is not, and yet two more of the topic than one who could have had it; and "optimal" is
            as even as what is fixed allows.
        closed_known: Whether the group has the closed members of the time when the assignment was made. A plan that is
            read back later may leave a partition to nobody because of members that were closed then.

    Raises:
        InvalidAssignmentError: Any rule is broken; all broken rules are named.
    """
    n = group.n_partitions
    if assignment.member.shape != (n,) or assignment.why.shape != (n,):
        raise InvalidAssignmentError((f"{n} partitions, but {len(assignment.member)} entries",))
    if (assignment.member >= group.n_members).any() or (assignment.member < -1).any():
        raise InvalidAssignmentError((f"member index outside -1 .. {group.n_members - 1}",))
    may_read = _may_read(group)
    problems = [
        f"{words} {_first(group, broken)}"
        for words, broken in _rules(group, assignment, may_read, closed_known=closed_known)
        # A fifth of the time of `any`, for a group of sixty partitions.
        if np.count_nonzero(broken)
    ]
    problems += _uneven(group, assignment, may_read, even=even)
    if problems:
        raise InvalidAssignmentError(tuple(problems))
    return Verdict(group=group, assignment=assignment)


def _rules(
    group: Group, assignment: Assignment, may_read: Bools, *, closed_known: bool
) -> Iterator[tuple[str, Bools]]:
    """Each rule in words, and P entries: is it broken."""
    has_member, has_reason = assignment.member >= 0, assignment.why != 0
    yield "does not subscribe, but gets", _reads_unsubscribed(group, assignment, may_read)
    yield "no member and no reason for", ~(has_member | has_reason)
    yield "a member and a reason to have none for", has_member & has_reason
    yield (
        "wrong about whether anybody subscribes to",
        _wrong_about_readers(group, assignment, may_read),
    )
    if group.fixed is not None or group.closed is not None:
        yield "moves the fixed", _moves_fixed(group, assignment)
        yield "gives a member that follows no plans", _gives_closed(group, assignment)
    if closed_known:
        yield "wrong about whether anybody takes", _wrong_about_takers(group, assignment, may_read)


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
    claimed_unread = assignment.why == _NOBODY_SUBSCRIBES
    unread = np.logical_not(may_read.any(axis=1))
    wrong: Bools = claimed_unread != unread[group.topics.topic_of]
    return wrong


def _moves_fixed(group: Group, assignment: Assignment) -> Bools:
    moved: Bools = _stays(group) & (assignment.member != group.owner)
    return moved


def _stays(group: Group) -> Bools:
    """Partitions that have to be where they were: those fixed, and those of closed members."""
    stays = np.zeros(group.n_partitions, np.bool_)
    owned = np.nonzero(group.owner >= 0)[0]
    for marks, index in ((group.fixed, owned), (group.closed, group.owner[owned])):
        if marks is not None:
            stays[owned] |= marks[index]
    return stays


def _gives_closed(group: Group, assignment: Assignment) -> Bools:
    given = np.zeros(group.n_partitions, np.bool_)
    if group.closed is not None:
        new = np.nonzero((assignment.member >= 0) & (assignment.member != group.owner))[0]
        given[new] = group.closed[assignment.member[new]]
    return given


def _wrong_about_takers(group: Group, assignment: Assignment, may_read: Bools) -> Bools:
    """Partitions without a member because nobody takes them, while no subscriber of theirs is closed."""
    said: Bools = assignment.why == _NOBODY_TAKES
    if group.closed is None:
        return said
    by_closed: Bools = np.logical_or.reduce(may_read[:, group.closed], axis=1)
    wrong: Bools = said & ~by_closed[group.topics.topic_of]
    return wrong


def _uneven(group: Group, assignment: Assignment, may_read: Bools, *, even: Even) -> list[str]:
    assigned = np.nonzero(assignment.member >= 0)[0]
    if even == "no" or len(assigned) == 0:
        return []
    topic, member = group.topics.topic_of[assigned], assignment.member[assigned]
    stays = _stays(group)[assigned]
    takes = may_read if group.closed is None else may_read & ~group.closed
    if even == "topic":
        return _uneven_in_topics(group, topic, np.where(stays, -1 - member, member), takes)
    counts = np.bincount(member, minlength=group.n_members)
    if even == "group":
        return [] if np.ptp(counts) <= 1 else [f"counts from {counts.min()} to {counts.max()}"]
    # Counts within one are not always possible; that no augmenting path is left is the certificate.
    # What has to stay on a member is a topic of its own that nobody else reads.
    only = np.eye(group.n_members, dtype=np.bool_)
    takes = np.concatenate((takes, only))
    holds = np.zeros_like(takes)
    holds[np.where(stays, len(may_read) + member, topic), member] = True
    path = find_augmenting_path(holds, takes, counts)
    if path is None:
        return []
    short = f"{group.member_ids[path.to_member]} with {counts[path.to_member]}"
    return [f"counts less even than possible: a member with {path.count} could hand on towards {short}"]


def _uneven_in_topics(group: Group, topic: Int32s, member: Int32s, takes: Bools) -> list[str]:
    """Topics in which a partition could go to a member with two fewer; `-1 - member` is one that has to stay."""
    problems = []
    for t, name in enumerate(group.topics.names):
        of_topic = member[topic == t]
        counts = np.bincount(np.where(of_topic < 0, -1 - of_topic, of_topic), minlength=group.n_members)
        gives = np.bincount(of_topic[of_topic >= 0], minlength=group.n_members) > 0
        most, least = counts[gives].max(initial=0), counts[takes[t]].min(initial=len(topic))
        if most > least + 1:
            problems.append(f"counts of topic {name} from {least} to {most}")
    return problems


def _first(group: Group, broken: Bools) -> str:
    return f"{group.topics.name(int(np.argmax(broken)))} ({int(broken.sum())} partition(s))"
