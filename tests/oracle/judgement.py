"""What Kafka's sticky assignors answered, judged, and ours compared with it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assignor.errors import InvalidAssignmentError
from assignor.evaluation.validity import check
from assignor.model.arrays import Int32s
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from tests.oracle.kafka_assignors import ByMember, Document, KafkaAssignors, KafkaError
from tests.support.assignors import literal_rules

_MOST_ROUNDS = 8
_LATER_GENERATION = 100
"""Later than every generation a case claims."""


class InvalidResultError(Exception):
    """Kafka's result breaks a rule; the message says which."""


class EndlessError(InvalidResultError):
    """Kafka's assignor does not end."""


class UnsettledError(InvalidResultError):
    """Kafka's cooperative assignor still moves partitions after many rebalances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merit:
    """What makes one valid assignment better than another; less is better, evenness first."""

    counts: tuple[int, ...]
    """Partitions of each member, the largest first: the lexicographically least is the most even."""
    moves: int
    """Partitions taken from a member that could have kept them."""


def merit(group: Group, document: Document, assignment: Assignment) -> Merit:
    """The merit of an assignment that is valid and complete.

    Raises:
        InvalidAssignmentError: It is not.
    """
    verdict = check(group, assignment)
    owners = zip(_owners(group, document), assignment.member.tolist(), strict=True)
    return Merit(
        counts=tuple(sorted(verdict.counts.tolist(), reverse=True)),
        moves=sum(owner not in (-1, member) for owner, member in owners),
    )


def _owners(group: Group, document: Document) -> list[int]:
    """Who owns each partition by the letter of KIP-341, as long as it still subscribes; -1 for nobody."""
    indices, members = _partition_indices(group), document["members"]
    claims = [
        (indices[f"{topic}-{number}"], m, members[name].get("generation", -1))
        for m, name in enumerate(group.member_ids)
        for topic, numbers in members[name].get("owned", {}).items()
        for number in numbers
        if f"{topic}-{number}" in indices
    ]
    holders, _ = literal_rules.resolve(claims, group.n_partitions)
    topics = [group.topics.names[t] for t in group.topics.topic_of.tolist()]
    return [
        holder if holder >= 0 and topic in members[group.member_ids[holder]]["topics"] else -1
        for holder, topic in zip(holders, topics, strict=True)
    ]


def _partition_indices(group: Group) -> dict[str, int]:
    return {group.topics.name(index): index for index in range(group.n_partitions)}


def kafkas_target(kafka: KafkaAssignors, group: Group, document: Document) -> Assignment:
    """What Kafka's eager assignor makes of the case in one rebalance, proved to be valid and complete.

    Raises:
        InvalidResultError: Kafka threw, gave a partition twice, to nobody, to somebody who never subscribed, or
            one that does not exist.
    """
    try:
        return _complete(group, kafka.assign("sticky", document))
    except KafkaError as error:
        raise _invalid(error) from error


def kafkas_settled(kafka: KafkaAssignors, group: Group, document: Document) -> Assignment:
    """What Kafka's cooperative assignor settles on, rebalance by rebalance, proved to be valid and complete.

    Raises:
        InvalidResultError: As `kafkas_target`.
        UnsettledError: It did not settle.
    """
    try:
        *_, last = _rounds(kafka, document)
    except KafkaError as error:
        raise _invalid(error) from error
    return _complete(group, last)


def _invalid(error: KafkaError) -> InvalidResultError:
    return (EndlessError if "no end within" in str(error) else InvalidResultError)(str(error))


def _rounds(kafka: KafkaAssignors, document: Document) -> Iterator[ByMember]:
    """One assignment for each rebalance, up to the first that changes nothing."""
    for generation in range(_LATER_GENERATION, _LATER_GENERATION + _MOST_ROUNDS):
        assigned = kafka.assign("cooperative-sticky", document)
        yield assigned
        members = document["members"]
        after = {
            name: members[name] | {"owned": by_topic, "generation": generation}
            for name, by_topic in assigned.items()
        }
        if all(_same(after[name]["owned"], members[name].get("owned", {})) for name in members):
            return
        document = document | {"members": after}
    raise UnsettledError(f"not settled after {_MOST_ROUNDS} rebalances")


def _same(left: dict[str, list[int]], right: dict[str, list[int]]) -> bool:
    return {(t, n) for t, numbers in left.items() for n in numbers} == {
        (t, n) for t, numbers in right.items() for n in numbers
    }


def _complete(group: Group, assigned: ByMember) -> Assignment:
    member: Int32s = np.full(group.n_partitions, -1, np.int32)
    place = {name: m for m, name in enumerate(group.member_ids)}
    indices = _partition_indices(group)
    for name, by_topic in assigned.items():
        for partition in (f"{topic}-{number}" for topic, numbers in by_topic.items() for number in numbers):
            index = indices.get(partition)
            if index is None:
                raise InvalidResultError(f"{partition} does not exist")
            if member[index] >= 0:
                raise InvalidResultError(f"{partition} is given twice")
            member[index] = place[name]
    assignment = Assignment.complete(group, member)
    try:
        check(group, assignment)
    except InvalidAssignmentError as error:
        raise InvalidResultError(str(error)) from error
    return assignment
