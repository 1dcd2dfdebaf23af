"""The state of one follower, which moves partitions within a generation of its group.

    OUT ── assigned ──► BASE ── plan fits ──► FOLLOW
     ▲                    ▲ └── withdrawn or over ◄──┘
     │ revoked, lost      │
     ├────────────────────┴── commit refused ──► OUT_PENDING ── revoked, lost ──► OUT
     └── revoked ── REJOIN ◄── nobody took what was released; no reason came for a refused commit;
                               migration has become possible, and partitions are not where Kafka put them;
                               lagwise's topics are away in the midst of a plan; a release did not arrive;
                               the same generation is assigned while nobody knows of a commit with a mark

    HELD ─ all follow ─► STOPPING ─ commit ok ─► RELEASED ─ the commit is another's ─► GONE
      ▲                                              │                                   │
      └──────── commit ok ──── CHECK ◄── the commit is marked for me ────────────────────┘   (from ABSENT as well)

A record of the acks topic moves nothing, because any client may have written it. `release` and `taken` are hints to
look at the group's commits, which only members can write, and only in their generation. The mark of a commit names the
owner of the partition (`assignor.protocol.marks`), so a commit with a mark is never taken back.

"All" are the members that the plan's moves name: half of a plan can be worse than none. Each sees the others'
acceptances, and its own, in the one order of the topic, so all old owners begin at the same record or none does.

Kafka's own rebalance is the only authority over a generation: it starts from what Kafka assigned, the base.
Within it a partition has one token, which only its holder can pass on. Source: KIP-726 for a member that lost
its membership; ConsumerCoordinator and librdkafka's rd_kafka_cgrp for eager rebalances, in which the next
generation cannot begin before each live member gave up all it reads.
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from assignor.protocol.acks import AnyAck, Release
from assignor.protocol.control import ControlRecord
from assignor.protocol.marks import HandOverMark

PartitionKey: TypeAlias = tuple[str, int]
"""Topic and partition."""


class Phase(enum.Enum):
    """State of the member in its group and towards the plan."""

    OUT = "between two generations, or before the first"
    BASE = "in a generation, following no plan"
    FOLLOW = "following a plan"
    OUT_PENDING = "a commit was refused; the client will tell why"
    REJOIN = "leaving the generation of its own will"


class Mark(enum.Enum):
    """State of a partition; a partition without a token is absent."""

    HELD = "read by this member"
    STOPPING = "no longer read, its commit is under way"
    RELEASED = "given away, not yet taken"
    GONE = "with another member"
    CHECK = "marked for this member, whose own commit is under way"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Committed offset and metadata of a partition."""

    offset: int
    """Next record to read; negative for no commit."""
    mark: HandOverMark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """This member's knowledge of a partition in this generation."""

    mark: Mark
    hop: int = 0
    """Last hand-over that this member was part of; 0 for what Kafka assigned."""
    release: Release | None = None
    """STOPPING: not written yet, its offset is not known. RELEASED: written, and repeated until taken."""
    found: Found | None = None
    """CHECK: the commit of the old owner."""
    sends: int = 0
    """RELEASED: how often it was written."""
    sent_s: float = 0.0
    """RELEASED: when it was written last, on the monotonic clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """Now, on both clocks: one for timeouts, one for people."""

    monotonic_s: float
    wall_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Constants for the life of the member."""

    group: str
    static: bool = False
    """It has a group instance id: a restart within the generation would forget its tokens, so it stays on its base."""
    take_timeout_s: float = 310.0
    """A release that is not taken by then makes the group rebalance.

    Longer than a member may be busy without a poll: the rebalance would wait for the busy member, with everybody.
    """
    doubt_timeout_s: float = 10.0
    """A refused commit that Kafka does not explain by then makes the member rejoin."""
    despite_migration: bool = False
    """Follow even if a KIP-848 member may migrate the group, or if that is unknown."""
    topics: frozenset[str] | None = None
    """Subscribed topics: its user knows how to process no others. None if patterns subscribe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerState:
    """All that decides what the follower does next; mappings are never changed in place."""

    settings: Settings
    phase: Phase = Phase.OUT
    member: str = ""
    generation: int = -1
    """Last one known, also when OUT; -1 before the first and after a loss."""
    base: frozenset[PartitionKey] = frozenset()
    """Kafka's assignment in this generation."""
    tokens: Mapping[PartitionKey, Token] = field(default_factory=dict)
    """They outlive a revocation: Kafka may assign the same generation to the same member twice."""
    accepted: Mapping[str, int] = field(default_factory=dict)
    """Newest plan epoch that each member, this one included, has accepted in this generation.

    The entry of this member comes from the topic, too: other members do not know a lost acceptance.
    """
    unmarked: Mapping[str, int] = field(default_factory=dict)
    """The same for members of a version that does not mark its commits."""
    due: Mapping[PartitionKey, tuple[int, ...]] = field(default_factory=dict)
    """Epochs of plans accepted in this generation that give the partition to this member, which did not read it.

    Includes ended plans: a hand-over that has begun is finished.
    """
    looking: frozenset[PartitionKey] = frozenset()
    """Partitions whose commit was asked for."""
    cluster: str = ""
    """Name in the records; empty before the first plan."""
    inbox: tuple[AnyAck, ...] = ()
    """Acknowledgements not looked at yet."""
    offered: ControlRecord | None = None
    """The plan that is valid now."""
    decided: int = 0
    """Newest plan epoch accepted or refused since the partitions were assigned."""
    plan: ControlRecord | None = None
    """The plan accepted last in this generation, even if it is no longer followed."""
    targets: Mapping[PartitionKey, str] = field(default_factory=dict)
    """Targets of `plan`."""
    needed: frozenset[str] = frozenset()
    """Members that the moves of `plan` name."""
    agreed: int = 0
    """Newest plan epoch that all needed members followed at one time: its hand-overs finish even if one drops out.

    An epoch is of one generation, so it is never reset.
    """
    applied: bool = False
    """`plan` is done, as far as this member is concerned."""
    pending_since_s: float = 0.0
    """When a commit was refused."""

    @property
    def held(self) -> frozenset[PartitionKey]:
        """Return the partitions that the member reads."""
        return self.marked(Mark.HELD)

    @property
    def settled(self) -> bool:
        """Return whether the member is in a generation with no known problem."""
        return self.phase in (Phase.BASE, Phase.FOLLOW)

    @property
    def waiting(self) -> bool:
        """A commit of a hand-over, or a look at those of the group, is under way; one at a time."""
        return bool(self.looking) or any(
            token.mark in (Mark.STOPPING, Mark.CHECK) for token in self.tokens.values()
        )

    def marked(self, mark: Mark) -> frozenset[PartitionKey]:
        """Partitions with that mark."""
        return frozenset(key for key, token in self.tokens.items() if token.mark is mark)


Step: TypeAlias = "tuple[FollowerState, tuple[Action, ...]]"
Transition: TypeAlias = Callable[[FollowerState, Instant], Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """Event: Kafka assigned these partitions, and no others, to this member of this generation."""

    member: str
    generation: int
    places: frozenset[PartitionKey]


@dataclass(frozen=True, slots=True)
class Revoked:
    """Event: Kafka takes everything away, and waits until it is given up."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Event: the membership has ended; others may read the partitions already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSeen:
    """Event: the plan that is valid now, or that there is none."""

    plan: ControlRecord | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcksSeen:
    """Event: acknowledgements of this group, in the order of the topic."""

    acks: tuple[AnyAck, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Event: answer to `Commit`."""

    accepted: bool
    offsets: Mapping[PartitionKey, int]
    """Committed offsets: next record to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Event: answer to `Look`; unknown commits are left out."""

    found: Mapping[PartitionKey, Found]


@dataclass(frozen=True, slots=True)
class TopicsAway:
    """Event: records of other members may be missed from now on, until `PlanSeen`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undelivered:
    """Event: this acknowledgement of this member may never be read, or may have been."""

    ack: AnyAck


@dataclass(frozen=True, slots=True)
class Tick:
    """Event: time has passed. Acknowledgements that have arrived must be fed before."""


Event: TypeAlias = (
    Assigned | Revoked | Lost | PlanSeen | AcksSeen | Looked | Committed | TopicsAway | Undelivered | Tick
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign:
    """Action: read exactly these partitions, the ones already read from where they are.

    Others start at the offset given here, or otherwise at the group's commit.
    """

    places: frozenset[PartitionKey]
    offsets: Mapping[PartitionKey, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unassign:
    """Action: read nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Action: commit synchronously, and answer with `Committed` before any other event.

    None stands for the user's progress: the last commit, or the start of reading. The user's metadata stays, and the
    mark follows it.
    """

    offsets: Mapping[PartitionKey, int | None]
    marks: Mapping[PartitionKey, HandOverMark]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Action: ask the coordinator what the group has committed, and answer with `Looked` before any other event.

    If Kafka assigns, revokes or ends the membership before, the answer is of no interest any more.
    """

    places: frozenset[PartitionKey]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Action: write an acknowledgement without waiting; `Undelivered` reports that it did not arrive."""

    ack: AnyAck


@dataclass(frozen=True, slots=True)
class Rejoin:
    """Action: leave the group and join it again, which makes a new generation."""


class Change(enum.Enum):
    """Change of partitions, for the user."""

    GAINED = "they are read from now on"
    REVOKED = "they are given up after this; last chance to commit"
    LOST = "they are gone, and commits of them are refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Action: call the user's listener."""

    change: Change
    places: frozenset[PartitionKey]


Action: TypeAlias = Assign | Unassign | Look | Commit | Write | Rejoin | Tell
