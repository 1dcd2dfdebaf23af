"""A group of consumers that are bounced, fall asleep and crash, one small step at a time.

A consumer does something only when it is polled, so one that is not polled sleeps. Its application works on
records behind the poll loop: what is `in_hand` it commits even after the partition was lost, as long as the
consumer lets it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from assignor.evaluation.validity import check
from assignor.model.arrays import Bools
from assignor.model.group import Group
from assignor.strategies.catalogue import RebalanceProtocol
from assignor.strategies.handover import next_step
from assignor.strategies.registry import strategy
from assignor.strategies.selection import Mode
from tests.support.assignors.groups import group, member
from tests.support.followers.upgrade_coordinator import Coordinator, Fault, Joined, Joining, Shares, Synced
from tests.support.followers.upgrade_member import Partition, Phase, RebalancingMember

TOPICS = {"a": 3, "b": 2}
PARTITIONS = frozenset((topic, number) for topic, count in TOPICS.items() for number in range(count))


@dataclass(slots=True)
class Consumer:
    """One process; a bounce ends it and starts another."""

    state: RebalancingMember
    member_id: str | None = None
    in_hand: frozenset[Partition] = frozenset()


@dataclass(slots=True)
class SimulatedGroup:
    """Consumers by slot: a bounce replaces the consumer of a slot."""

    kind: type[RebalancingMember] = RebalancingMember
    mode: Mode = "kip"
    coordinator: Coordinator = field(default_factory=Coordinator)
    consumers: dict[int, Consumer] = field(default_factory=dict)

    def start(self, slot: int, assignors: tuple[str, ...]) -> None:
        """A new consumer in an empty slot."""
        self.consumers[slot] = Consumer(state=self.kind.started(assignors, mode=self.mode))

    def stop(self, slot: int) -> None:
        """A clean end: LeaveGroup."""
        gone = self.consumers.pop(slot, None)
        if gone is not None:
            self.coordinator.expire(gone.member_id)

    def crash(self, slot: int) -> None:
        """An end that nobody is told of; the session times out later."""
        self.consumers.pop(slot, None)

    def expire(self, slot: int) -> None:
        """The session timeout of a consumer that has not been polled for long."""
        if slot in self.consumers:
            self.coordinator.expire(self.consumers[slot].member_id)

    def expire_crashed(self) -> None:
        """The session timeout of all that are no more."""
        alive = {consumer.member_id for consumer in self.consumers.values()}
        for member_id in sorted(set(self.coordinator.members) - alive):
            self.coordinator.expire(member_id)

    def poll(self, slot: int) -> None:
        """One step of a consumer: it sends one request, or takes one answer that has come."""
        consumer = self.consumers.get(slot)
        if consumer is None:
            return
        phase = consumer.state.phase
        if phase in {Phase.OUT, Phase.REJOIN}:
            self._join(slot, consumer)
        elif phase is Phase.STABLE:
            self._heartbeat(slot, consumer)
        elif answer := self.coordinator.answer(consumer.member_id):
            self._take(consumer, answer)
        elif consumer.member_id not in self.coordinator.members:
            _fence(consumer)

    def settle(self) -> None:
        """Poll everybody until nothing changes any more.

        Raises:
            AssertionError: The group never comes to rest.
        """
        self.expire_crashed()
        for _ in range(60):
            before = [consumer.state for consumer in self.consumers.values()]
            for slot in sorted(self.consumers):
                self.poll(slot)
            if before == [consumer.state for consumer in self.consumers.values()] and self._is_at_rest():
                return
        raise AssertionError("the group does not come to rest")

    def double_owners(self) -> list[Partition]:
        """Partitions for which commits of two consumers would be accepted now."""
        committed = [
            partition for consumer in self.consumers.values() for partition in self._commits(consumer)
        ]
        return sorted({partition for partition in committed if committed.count(partition) > 1})

    def _commits(self, consumer: Consumer) -> frozenset[Partition]:
        state = consumer.state
        accepted = self.coordinator.takes_commits_of(consumer.member_id, state.generation)
        return state.owned | consumer.in_hand if state.may_commit and accepted else frozenset()

    def _is_at_rest(self) -> bool:
        return all(consumer.state.phase is Phase.STABLE for consumer in self.consumers.values())

    def _heartbeat(self, slot: int, consumer: Consumer) -> None:
        fault = self.coordinator.heartbeat(consumer.member_id, consumer.state.generation)
        if fault is Fault.FENCED:
            _fence(consumer)
        elif fault is Fault.IN_PROGRESS:
            self._join(slot, consumer)
        else:
            consumer.in_hand = consumer.state.owned

    def _join(self, slot: int, consumer: Consumer) -> None:
        revokes = consumer.state.may_commit
        consumer.state = consumer.state.prepare()
        if revokes:
            # Revoking waits for the application; losing does not.
            consumer.in_hand &= consumer.state.owned
        request = Joining(
            assignors=consumer.state.assignors,
            owned=consumer.state.owned,
            generation=consumer.state.generation,
        )
        answer = self.coordinator.join(consumer.member_id, request)
        if answer is Fault.INCONSISTENT:
            self.stop(slot)
        elif isinstance(answer, Fault):
            _fence(consumer)
        else:
            consumer.member_id = answer

    def _take(self, consumer: Consumer, answer: Joined | Synced | Fault) -> None:
        if isinstance(answer, Joined):
            self._sync(consumer, answer)
        elif isinstance(answer, Synced):
            consumer.state = consumer.state.assigned(answer.partitions)
            if consumer.state.may_commit:
                consumer.in_hand &= consumer.state.owned
        else:
            consumer.state = consumer.state.interrupted()

    def _sync(self, consumer: Consumer, answer: Joined) -> None:
        consumer.state = consumer.state.selected(answer.assignor, generation=answer.generation)
        shares = None if answer.members is None else assign(answer.assignor, answer.members)
        fault = self.coordinator.sync(consumer.member_id, answer.generation, shares)
        if fault is Fault.FENCED:
            _fence(consumer)
        elif fault is Fault.IN_PROGRESS:
            consumer.state = consumer.state.interrupted()


def _fence(consumer: Consumer) -> None:
    consumer.state, consumer.member_id = consumer.state.fenced(), None


def assign(assignor: str, members: Mapping[str, Joining]) -> Shares:
    """What the leader sends: the assignment of the selected assignor, or its first step if it is cooperative."""
    built = group(
        TOPICS,
        *(
            member(name, *TOPICS, owned=_by_topic(request.owned), generation=request.generation)
            for name, request in members.items()
        ),
    )
    chosen = strategy(assignor)
    target = chosen.assign(built, {})
    if RebalanceProtocol.COOPERATIVE in chosen.protocols:
        target = next_step(built, target)
    check(built, target)
    return {name: _partitions(built, target.member == m) for m, name in enumerate(built.member_ids)}


def _by_topic(partitions: frozenset[Partition]) -> dict[str, list[int]]:
    return {topic: [number for t, number in sorted(partitions) if t == topic] for topic in TOPICS}


def _partitions(built: Group, held: Bools) -> frozenset[Partition]:
    topics = built.topics
    return frozenset(
        (topics.names[topics.topic_of[pid]], int(topics.number_of[pid])) for pid in np.nonzero(held)[0]
    )
