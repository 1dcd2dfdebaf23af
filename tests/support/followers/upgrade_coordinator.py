"""The coordinator of a classic group, as far as a choice of assignors needs it: one group, no clock.

A session timeout is an event (`expire`), so that a walk can let it happen at the worst moment. A JoinGroup is
answered when every member has sent one, a SyncGroup when the leader's has come; answers wait in `answers`
until their member looks for them, however late that is.

Source: Kafka's ClassicGroup and GroupMetadataManager, without static members.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from assignor.errors import NoCommonAssignorError
from assignor.strategies.selection import select_assignor
from tests.support.followers.upgrade_member import Partition

Shares: TypeAlias = Mapping[str, frozenset[Partition]]


class GroupState(enum.Enum):
    PREPARING = "waits for JoinGroup of all members"
    COMPLETING = "waits for the leader's SyncGroup"
    STABLE = "everybody can have its assignment"


class Fault(enum.Enum):
    FENCED = "UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION"
    IN_PROGRESS = "REBALANCE_IN_PROGRESS"
    INCONSISTENT = "INCONSISTENT_GROUP_PROTOCOL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """What a JoinGroup request carries."""

    assignors: tuple[str, ...]
    owned: frozenset[Partition]
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What answers it; the leader gets everybody's request."""

    generation: int
    assignor: str
    members: Mapping[str, Joining] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What answers a SyncGroup."""

    partitions: frozenset[Partition]


@dataclass(slots=True)
class Coordinator:
    state: GroupState = GroupState.STABLE
    generation: int = 0
    assignor: str = ""
    members: dict[str, Joining] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)
    syncing: set[str] = field(default_factory=set)
    shares: Shares = field(default_factory=dict)
    answers: dict[str, Joined | Synced | Fault] = field(default_factory=dict)
    ids_given: int = 0

    def join(self, member_id: str | None, request: Joining) -> str | Fault:
        """A JoinGroup; it begins a rebalance if there is none. A new member, without an id, gets one."""
        if member_id is not None and member_id not in self.members:
            return Fault.FENCED
        others = [other.assignors for name, other in self.members.items() if name != member_id]
        try:
            select_assignor([*others, request.assignors])
        except NoCommonAssignorError:
            return Fault.INCONSISTENT
        if member_id is None:
            self.ids_given += 1
            member_id = f"m{self.ids_given:03}"
        self.members[member_id] = request
        self._prepare()
        self.joined.add(member_id)
        self._complete()
        return member_id

    def sync(self, member_id: str | None, generation: int, shares: Shares | None) -> Fault | None:
        """A SyncGroup; the leader's carries the assignment."""
        if member_id is None or member_id not in self.members or generation != self.generation:
            return Fault.FENCED
        if self.state is GroupState.PREPARING:
            return Fault.IN_PROGRESS
        self.syncing.add(member_id)
        if shares is not None:
            self.shares, self.state = shares, GroupState.STABLE
        if self.state is GroupState.STABLE:
            for name in self.syncing:
                self.answers[name] = Synced(partitions=self.shares[name])
            self.syncing = set()
        return None

    def heartbeat(self, member_id: str | None, generation: int) -> Fault | None:
        if member_id not in self.members or generation != self.generation:
            return Fault.FENCED
        return Fault.IN_PROGRESS if self.state is GroupState.PREPARING else None

    def expire(self, member_id: str | None) -> None:
        """Session or rebalance timeout, or LeaveGroup: the others rebalance without it."""
        if member_id in self.members:
            del self.members[member_id]
            self.joined.discard(member_id)
            self.syncing.discard(member_id)
            self._prepare()
            self._complete()

    def answer(self, member_id: str | None) -> Joined | Synced | Fault | None:
        """The answer that waits for a member, taken away."""
        return None if member_id is None else self.answers.pop(member_id, None)

    def takes_commits_of(self, member_id: str | None, generation: int) -> bool:
        """Is an OffsetCommit of this member accepted. Who owns the partition is not looked at."""
        known = member_id in self.members and generation == self.generation
        return known and self.state is not GroupState.COMPLETING

    def _prepare(self) -> None:
        if self.state is GroupState.PREPARING:
            return
        for member_id in self.syncing:
            self.answers[member_id] = Fault.IN_PROGRESS
        self.state, self.joined, self.syncing = GroupState.PREPARING, set(), set()

    def _complete(self) -> None:
        if not self.members or self.joined != set(self.members):
            return
        self.generation += 1
        self.state = GroupState.COMPLETING
        self.assignor = select_assignor([member.assignors for member in self.members.values()]).assignor
        leader = min(self.members)
        for member_id in self.members:
            self.answers[member_id] = Joined(
                generation=self.generation,
                assignor=self.assignor,
                members=dict(self.members) if member_id == leader else None,
            )
