"""Kafka's range and roundrobin one partition at a time, as their Java states them: the oracles."""

from collections import defaultdict
from dataclasses import dataclass

from assignor.model.group import Group
from tests.support.assignors.literal_rules import partitions_of, subscribers


@dataclass
class TopicState:
    """What RangeAssignor keeps per topic; `member` is the assignment being made."""

    partitions: range
    racks: dict[int, str]
    replicas: list[set[str]]
    free: list[int]
    held: dict[int, int]
    extras: int
    member: list[int]

    def room(self, member: int) -> int:
        base = len(self.partitions) // len(self.held)
        return max(0, base + (self.extras > 0) - self.held[member])

    def give(self, member: int, numbers: list[int]) -> None:
        for number in numbers:
            self.member[self.partitions[number]] = member
            self.free.remove(number)
        self.held[member] += len(numbers)
        self.extras -= self.held[member] > len(self.partitions) // len(self.held) and bool(numbers)

    def matches(self, member: int, number: int) -> bool:
        return not self.racks[member] or self.racks[member] in self.replicas[number]

    def needs_racks(self) -> bool:
        mine, theirs = set(self.racks.values()) - {""}, set().union(*self.replicas)
        return bool(mine & theirs) and not all(racks == theirs for racks in self.replicas)

    def in_turn(self, *, match: bool) -> None:
        for m in self.racks:
            may = [number for number in self.free if not match or self.matches(m, number)]
            self.give(m, may[: self.room(m)])


def range_assignor(
    group: Group, member_racks: dict[str, str], replica_racks: dict[str, list[list[str]]]
) -> list[int]:
    """RangeAssignor with its rack pass."""
    member = [-1] * group.n_partitions
    states = []
    for t, name in enumerate(group.topics.names):
        readers, partitions = subscribers(group, t), partitions_of(group, t)
        if readers and partitions:
            states.append(
                TopicState(
                    partitions=partitions,
                    racks={m: member_racks.get(group.member_ids[m], "") for m in readers},
                    replicas=[set(racks) for racks in replica_racks[name]],
                    free=list(range(len(partitions))),
                    held=dict.fromkeys(readers, 0),
                    extras=len(partitions) % len(readers),
                    member=member,
                )
            )
    if any(state.needs_racks() for state in states):
        _rack_pass(states)
    for state in states:
        state.in_turn(match=False)
    return member


def _rack_pass(states: list[TopicState]) -> None:
    together = defaultdict(list)
    for state in states:
        seen = len(state.replicas) if any(state.racks.values()) else 0
        together[tuple(state.racks.items()), seen].append(state)
    for (_, count), joined in together.items():
        if len(joined) > 1:
            for number in range(count):
                _first_match(joined, number)
        elif joined[0].needs_racks():
            joined[0].in_turn(match=True)


def _first_match(joined: list[TopicState], number: int) -> None:
    for m in joined[0].racks:
        if all(state.matches(m, number) and state.room(m) for state in joined):
            for state in joined:
                state.give(m, [number])
            return


def roundrobin(group: Group) -> list[int]:
    """RoundRobinAssignor: a turn that passes over members that do not subscribe."""
    member, turn = [-1] * group.n_partitions, 0
    for t in range(group.topics.n_topics):
        readers = subscribers(group, t)
        for partition in partitions_of(group, t) if readers else ():
            while turn % group.n_members not in readers:
                turn += 1
            member[partition] = turn % group.n_members
            turn += 1
    return member
