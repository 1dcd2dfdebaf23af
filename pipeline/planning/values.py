"""The three values of a decision, made in this order: the target, the verdict on it, and what is sent."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from assignor.model.assignment import Assignment
from assignor.protocol.migration import Migration
from pipeline.planning.state import FRESH, GroupState, PlanState, Ranges, WaitingPlan

Decided: TypeAlias = Literal["publish", "dry_run", "advice", "awaiting_approval", "unchanged", "abstain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The newest plan of the group on the control topic."""

    epoch: int
    target_hash: str
    base_hash: str
    valid_until_ms: int

    def is_valid(self, now_ms: int) -> bool:
        """Return whether readers may still act on it."""
        return now_ms < self.valid_until_ms

    @property
    def is_known(self) -> bool:
        """Return whether the tables have the plan; of others only the epoch and the validity are known."""
        return bool(self.target_hash)

    @property
    def hashes(self) -> tuple[str, str]:
        """Return the hashes of target and base, equal for equal contents."""
        return self.target_hash, self.base_hash


def next_epoch(published: Published | None, *, least: int) -> int:
    """Return the epoch of a group's next plan: above all known ones, and not below `least`.

    `least` is the clock of the batch in seconds since 1970, so epochs that were lost with a table or topic lie below
    it and are never reused. A second plan within one second continues from the first.
    """
    return max((published.epoch if published is not None else 0) + 1, least)


class Move(NamedTuple):
    """A partition that changes its owner; `from_member` is None if it had none."""

    topic: str
    partition: int
    from_member: str | None
    to_member: str | None
    lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Expected figures of a group before and after a plan; times in s."""

    drain_s_before: float | None = None
    """None: never where `capacity_known`, otherwise unknown; so are the next two."""
    drain_s_after: float | None = None
    drain_s_bound: float | None = None
    capacity_known: bool | None = None
    """Whether the speed of the members is known; None without a target."""
    imbalance_before: float | None = None
    imbalance_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Target:
    """The wanted assignment by names, with its figures."""

    assignment: Assignment
    by_member: Ranges
    """Member id -> topic -> ranges of partition numbers."""
    moves: tuple[Move, ...]
    revoked: Ranges
    """What these moves revoke: member id -> topic -> ranges."""
    unassigned: Ranges
    """Reason -> topic -> ranges of the partitions that stay without an owner."""
    base_hash: str
    """Hash of the generation, the members, their subscriptions and partitions; see `record.to_target` for KIP-848."""
    target_hash: str
    figures: Figures

    @property
    def receivers(self) -> tuple[str, ...]:
        """Members that are given something, in the order of their ids."""
        return tuple(sorted({move.to_member for move in self.moves if move.to_member is not None}))

    @property
    def hashes(self) -> tuple[str, str]:
        """Return the hashes of a published plan with the same contents."""
        return self.target_hash, self.base_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision and its reason."""

    decided: Decided
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The record for the control topic."""

    epoch: int
    record: str | None
    """The record's value; None withdraws the group's plan."""
    valid_until_ms: int
    migration: Migration = "unknown"
    """Value in the record."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Publication:
    """A target that is sent, for the group in one generation."""

    target: Target
    sent: Sent
    generation: int
    at_ms: int
    approved_by: str | None = None
    """Operator who approved it; None if no approval was needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A row of `plan_state`: what is decided, and what the next decision has to know."""

    strategy: str
    base_generation: int | None = None
    target: Target | None = field(default=None, compare=False)
    """None if the decision has no target."""
    verdict: Verdict
    sent: Sent | None = None
    """None unless the target is published."""
    plan: PlanState | None = None
    """Outcome so far of the plan published before this decision."""
    state: GroupState = FRESH
    """State for the next decision."""

    @property
    def decided(self) -> Decided:
        """See `Verdict`."""
        return self.verdict.decided

    @property
    def reason(self) -> str | None:
        """See `Verdict`."""
        return self.verdict.reason

    @property
    def moves(self) -> tuple[Move, ...]:
        """Moves of the target."""
        return self.target.moves if self.target is not None else ()

    @property
    def assignment(self) -> Ranges | None:
        """Partitions of the target, by member."""
        return self.target.by_member if self.target is not None else None

    @property
    def figures(self) -> Figures:
        """Figures of the target."""
        return self.target.figures if self.target is not None else Figures()

    @property
    def target_hash(self) -> str | None:
        """Hash of the target; empty in a withdrawal, which is the hash of no group, so that the next target differs."""
        if self.target is not None:
            return self.target.target_hash
        return "" if self.sent is not None else None

    @property
    def base_hash(self) -> str | None:
        """As `target_hash`."""
        if self.target is not None:
            return self.target.base_hash
        return "" if self.sent is not None else None

    @property
    def epoch(self) -> int | None:
        """Epoch of the record that is sent."""
        return self.sent.epoch if self.sent is not None else None

    @property
    def record(self) -> str | None:
        """The record that is sent, as text."""
        return self.sent.record if self.sent is not None else None

    @property
    def valid_until_ms(self) -> int | None:
        """Validity of the plan that is sent or waits for approval."""
        if self.sent is not None:
            return self.sent.valid_until_ms
        return self._waiting.valid_until_ms if self._waiting is not None else None

    @property
    def awaiting_since_ms(self) -> int | None:
        """Since when the target waits for approval."""
        return self._waiting.since_ms if self._waiting is not None else None

    @property
    def _waiting(self) -> WaitingPlan | None:
        return self.state.waiting if self.decided == "awaiting_approval" else None
