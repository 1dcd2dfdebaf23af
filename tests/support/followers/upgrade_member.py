"""A member of a group whose rebalance protocol follows the selected assignor (KIP-726).

One rolling bounce adds `cooperative-sticky` in front of the members' lists, or takes it away, and nobody has to
plan it: while any member lists only eager assignors, an eager one is selected and everybody is eager; once all list
`cooperative-sticky`, the next rebalance selects it, and from then on members keep their partitions while they join.

The danger is a member that joined as cooperative, so that it gave nothing up, in a rebalance in which an eager
assignor is selected, because a member on an old list came late or came back: that assignor gives its partitions to
others. It learns so from the answer to its JoinGroup, and then drops everything and commits no more::

    OUT ─prepare─► JOINING ─selected─► SYNCING ─assigned─► STABLE     nothing to give up
                      ▲ │                 └─────assigned─► REJOIN     gave up partitions, others wait for them
                      │ └─selected, eager, and it holds─► LOST ─assigned─► REJOIN     takes nothing, commits nothing
                      └──prepare── STABLE, REJOIN
    SYNCING, LOST ─interrupted─► REJOIN;  any ─fenced─► OUT
"""

import enum
from dataclasses import dataclass, replace
from typing import TypeAlias

from assignor.model.claims import NO_GENERATION
from assignor.strategies.catalogue import RebalanceProtocol
from assignor.strategies.selection import Mode, rebalance_protocol

Partition: TypeAlias = tuple[str, int]
_NOTHING: frozenset[Partition] = frozenset()


class Phase(enum.Enum):
    """Where a member stands in a rebalance."""

    OUT = "out"
    """In no group, as far as it knows."""
    JOINING = "joining"
    """JoinGroup was sent."""
    SYNCING = "syncing"
    """SyncGroup was sent."""
    LOST = "lost"
    """SyncGroup was sent, but its partitions are with others and it takes no new ones in this generation."""
    STABLE = "stable"
    """It has its assignment."""
    REJOIN = "rejoin"
    """It has to join again now, without waiting for a heartbeat that says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalancingMember:
    """What a member knows; every event gives the state after it."""

    assignors: tuple[str, ...]
    """Its list, the best first (`partition.assignment.strategy`)."""
    mode: Mode = "kip"
    """Whether its protocol follows the selection, or its own list as in Kafka's consumers."""
    protocol: RebalanceProtocol = RebalanceProtocol.EAGER
    """Which it follows when the next rebalance begins; it knows no selection then, so it is that of the last."""
    phase: Phase = Phase.OUT
    generation: int = NO_GENERATION
    owned: frozenset[Partition] = _NOTHING
    may_commit: bool = False
    """Does it send commits. The coordinator refuses those of another generation besides."""

    @classmethod
    def started(cls, assignors: tuple[str, ...], *, mode: Mode = "kip") -> "RebalancingMember":
        """A member that has just been started: eager until it has seen what is selected, or fixed by its list."""
        fixed = rebalance_protocol(assignors[0], assignors, mode="shipped")
        return cls(
            assignors=assignors,
            mode=mode,
            protocol=fixed if mode == "shipped" else RebalanceProtocol.EAGER,
        )

    def prepare(self) -> "RebalancingMember":
        """Before JoinGroup: an eager member revokes all it owns, a cooperative one keeps it."""
        keeps = self.protocol is RebalanceProtocol.COOPERATIVE
        return replace(self, phase=Phase.JOINING, owned=self.owned if keeps else _NOTHING)

    def selected(self, assignor: str, *, generation: int) -> "RebalancingMember":
        """JoinGroup's answer: the assignor of this generation, whose protocol counts from now on.

        An eager assignor gives out everything, and of those that join only a cooperative member can still hold
        something. So one that holds anything now has lost it: what it commits from here on, others may have read
        on already.
        """
        protocol = rebalance_protocol(assignor, self.assignors, mode=self.mode)
        syncing = replace(self, phase=Phase.SYNCING, protocol=protocol, generation=generation)
        if protocol is RebalanceProtocol.EAGER and self.owned:
            return replace(syncing, phase=Phase.LOST, owned=_NOTHING, may_commit=False)
        return syncing

    def assigned(self, partitions: frozenset[Partition]) -> "RebalancingMember":
        """SyncGroup's answer. A member that lost its partitions takes none of these: it has not rejoined yet.

        The proposal asks for that; what keeps commits apart is that the partitions were lost before.

        Another owns what it was given. If that takes something away from it, it has revoked that now and joins
        again, so that the partition can be given to whom it was withheld from.
        """
        if self.phase is Phase.LOST:
            return replace(self, phase=Phase.REJOIN)
        phase = Phase.STABLE if self.owned <= partitions else Phase.REJOIN
        return replace(self, phase=phase, owned=partitions, may_commit=True)

    def interrupted(self) -> "RebalancingMember":
        """The next rebalance has begun before this one was done (REBALANCE_IN_PROGRESS)."""
        return replace(self, phase=Phase.REJOIN)

    def fenced(self) -> "RebalancingMember":
        """It is no member any more (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION): it missed a rebalance, all is lost."""
        return replace(self, phase=Phase.OUT, generation=NO_GENERATION, owned=_NOTHING, may_commit=False)
