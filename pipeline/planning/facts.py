"""The facts that a decision about one group depends on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from assignor.model.topics import Topics
from assignor.protocol.commands import Orders
from assignor.protocol.migration import Migration
from pipeline.lag.lag import OffsetReset
from pipeline.planning.guards import Guards


def is_new(at_ms: int, *, answered_ms: int, now_ms: int) -> bool:
    """Return whether an order given at this time is neither the one that was answered last nor an earlier one.

    Its time tells orders apart, and comes from the clock of whoever gave it. A topic that was restored from a copy may
    hold an earlier order. An answered time that has not come yet is of a clock that was ahead, and orders nothing.
    """
    return at_ms != answered_ms and (at_ms > answered_ms or answered_ms > now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """Progress of a member of a KIP-848 group towards its target assignment, from the group's records."""

    unknown: str | None = None
    """Unknown parts of its subscription, partitions and target; None if all are known."""
    is_classic: bool = False
    """It speaks the classic protocol: the group is on its way from one protocol to the other."""
    is_stuck: bool = False
    """It is behind its target assignment for longer than its rebalance timeout."""
    server_assignor: str | None = None
    """The assignor in the broker that it asks for; None for the broker's default."""
    target: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Its target assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFacts:
    """A member as the group's record shows it."""

    member_id: str
    instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    topics: tuple[str, ...] = ()
    """Subscribed topics."""
    assigned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Partitions that it owns now: the leader's assignment, with later hand-overs between followers."""
    error: str | None = None
    """Why its subscription could not be read."""
    reconciliation: Reconciliation | None = None
    """None for a member of a group of another type than KIP-848's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AckFacts:
    """A member's acknowledgement of the plan that it was asked to follow."""

    kind: str
    """accepted, refused, applied or void."""
    member_id: str
    epoch: int
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """A group as its newest record shows it; a group that only commits offsets has none and no members."""

    group_id: str
    group_type: str | None = None
    state: str | None = None
    protocol_type: str | None = None
    assignor: str | None = None
    generation: int | None = None
    """For a KIP-848 group, its group epoch."""
    target_epoch: int | None = None
    """For a KIP-848 group, the epoch of its target assignment."""
    members: tuple[MemberFacts, ...] = ()
    provisional: str | None = None
    """Reason why the group's state may be incomplete; None if it is complete."""
    mistakable: str | None = None
    """Reason why a broker could apply the group's plan to another group, or another's to it; None if it cannot."""
    acks: tuple[AckFacts, ...] = ()
    orders: Orders | None = None
    """Standing orders of operators; None without orders."""

    @property
    def is_kip848(self) -> bool:
        """Return whether the broker assigns the group's partitions: its consumers have `group.protocol=consumer`."""
        return self.group_type == "consumer"

    @property
    def is_between_targets(self) -> bool:
        """Return whether a KIP-848 group is on its way from one target assignment to the next."""
        return self.is_kip848 and self.state in {"Assigning", "Reconciling"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionFacts:
    """Every partition of every topic the group subscribes to, one entry each, sorted by topic and number.

    Topics are sorted as `topics.java_order` does. Unknown integers are `lag.UNKNOWN`, unknown rates nan.
    """

    topic: list[str]
    partition: Int64s
    committed: Int64s
    log_start: Int64s
    log_end: Int64s
    observed_at_ms: Int64s
    """When the broker last answered for the partition."""
    arrival_rate: Floats
    """Records/s."""
    drain_rate: Floats
    """Records/s that the group commits."""
    lag_age_s: Floats
    """Age of the next record to be read."""
    lag_at_commit: Int64s
    """Records the group was behind when it committed last (`lag.commits.at_commit`)."""
    commit_age_s: Floats
    """Seconds from the newest commit, by the coordinator's clock, to `observed_at_ms`; >= 0."""
    commit_interval_s: Floats
    """Seconds within which commits usually follow one another (`lag.commits.pace`)."""
    commit_rate: Floats
    """Records/s from an earlier commit to the newest."""
    commit_span_s: Floats
    """Seconds between these two."""
    least_lag: Int64s
    """Least lag at a commit between the two."""
    incomparable: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    """The commit was made in another topic of the same name, or is beyond the log end; empty for none."""
    commit_ahead_s: Floats = field(default_factory=lambda: np.zeros(0))
    """Seconds by which the newest commit is later than `observed_at_ms`, 0 for an earlier one; empty for none."""
    topics: Topics | None = None
    """These topics as the assignor takes them, if somebody has them already; of all their partitions."""
    unanswered: Sequence[str | None] = ()
    """Why the newest question about the log offsets had no answer, so that they are earlier ones; empty for none."""

    @property
    def newest_commit_ms(self) -> Floats:
        """Time of the newest commit of each partition, `observed_at_ms` for a later one; nan without one."""
        return self.observed_at_ms - self.commit_age_s * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The operator's rules for the group."""

    cluster: str
    strategy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    auto_offset_reset: OffsetReset
    exclude: bool
    dry_run: bool
    """Nothing is published."""
    needs_approval: bool = False
    """Each plan waits until an operator approves it."""
    broker_follows: bool = False
    """An assignor in the broker applies plans of the group, if it is one of KIP-848."""
    advice: str | None = None
    """Reason why plans are advice and are not published; None if members or the broker may apply them."""
    max_staleness_ms: int
    """The planner abstains if log offsets are older than this."""
    valid_for_ms: int
    """Validity of a plan for its readers."""
    max_record_bytes: int
    """Largest control record."""
    half_life_ms: int
    """Half-life of the moving averages that rates are (`rates.half_life_s`)."""
    unseen_ms: int
    """After a longer pause between two decisions, nothing counts as having lasted since the first."""
    guards: Guards
    least_epoch: int
    """No plan is sent under a lower one (`values.next_epoch`)."""
    migration: Migration = "unknown"
    """Whether the brokers would migrate the group online."""
