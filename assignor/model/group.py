"""A consumer group as flat arrays, the input of every strategy.

Members are indexed in the order that breaks every tie: those with a group.instance.id first, by it, then the
others by member id, both as Java compares strings. Member ids hold a random part, so only static members have
ties that survive a restart.
"""

from dataclasses import dataclass, field

import numpy as np

from assignor.errors import InvalidGroupError
from assignor.model.arrays import Bools, Floats, Int32s, Int64s
from assignor.model.claims import NO_GENERATION, Ownership
from assignor.model.racks import Racks
from assignor.model.subscriptions import Subscriptions
from assignor.model.topics import Topics

LEAST_CAPACITY = 1e-6
"""Records per second; one in eleven days. With less, drain times could not be told from infinity."""
GREATEST_RATE = 2**62
"""Records per second, also of a capacity."""
GREATEST_LAG = 2**62
"""Records of lag of all partitions together; no real log is that long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoredClaims:
    """Number of impossible claims, by cause. Members are not trusted, so these are not errors."""

    unknown_topic: int = 0
    """Claims on topics that do not exist, or no longer."""
    out_of_range: int = 0
    """Claims on partition numbers that are negative or past the last partition."""

    @property
    def total(self) -> int:
        """Number of all ignored claims."""
        return self.unknown_topic + self.out_of_range


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """N members over P partitions, with the known facts about each.

    Raises:
        InvalidGroupError: An array has the wrong length, an index is out of range, lag is negative or too
            large to be summed, a rate is not from 0 to `GREATEST_RATE`, or a capacity is not from
            `LEAST_CAPACITY` to `GREATEST_RATE`.
    """

    topics: Topics
    member_ids: tuple[str, ...]
    """N member ids, in tie-break order."""
    subscriptions: Subscriptions
    ownership: Ownership
    """Winning claims, also of members that no longer subscribe."""
    lag: Int64s
    """Records of lag of each partition, >= 0. Unknown lag was replaced before, according to auto.offset.reset."""
    rate: Floats
    """Records per second that arrive in each partition, >= 0."""
    capacity: Floats | None
    """Records per second each member can drain; None if unknown."""
    racks: Racks | None = None
    """Racks of members and replicas; None if no member has one."""
    fixed: Bools | None = None
    """P entries: True if the partition must stay with its owner; no effect without one. None fixes nothing."""
    closed: Bools | None = None
    """N entries: members that do not follow plans. They keep all that they own and are given nothing else."""
    newest_generation: int = NO_GENERATION
    """Newest generation that a member comes with, also one that claims nothing; `NO_GENERATION` if none has one."""
    ignored_claims: IgnoredClaims = field(default_factory=IgnoredClaims)
    owner: Int32s = field(init=False)
    """Holder of each partition as long as it still subscribes, otherwise -1."""
    takers: Subscriptions = field(init=False)
    """The subscriptions without closed members: who may be given what it does not own."""

    def __post_init__(self) -> None:
        self._check_measures()
        self._check_members()
        self._check_constraints()
        self._check_capacity()
        holder = self.ownership.holder
        owner = holder.copy()
        held = np.nonzero(holder >= 0)[0]
        allowed = self.subscriptions.allows(self.topics.topic_of[held], holder[held])
        owner[held[~allowed]] = -1
        object.__setattr__(self, "owner", owner)
        object.__setattr__(self, "takers", self._takers())

    def _check_measures(self) -> None:
        n = self.topics.n_partitions
        if self.lag.shape != (n,) or self.rate.shape != (n,):
            raise InvalidGroupError(f"lag and rate need one entry for each of {n} partitions")
        if self.lag.min(initial=0) < 0:
            raise InvalidGroupError(f"lag of {self.topics.name(int(self.lag.argmin()))} is negative")
        if float(self.lag.sum(dtype=np.float64)) > GREATEST_LAG:
            largest = self.topics.name(int(self.lag.argmax()))
            raise InvalidGroupError(
                f"total lag is above {GREATEST_LAG} records, the largest is that of {largest}"
            )
        # Not a number is neither.
        if n > 0 and not (self.rate.min() >= 0 and self.rate.max() <= GREATEST_RATE):
            possible = (self.rate >= 0) & (self.rate <= GREATEST_RATE)
            raise InvalidGroupError(
                f"arrival rate of {self.topics.name(int(possible.argmin()))} must be from 0 to {GREATEST_RATE} "
                "records per second"
            )

    def _check_members(self) -> None:
        n = len(self.member_ids)
        if self.subscriptions.n_members != n or len(self.subscriptions.set_of_topic) != self.topics.n_topics:
            raise InvalidGroupError("subscriptions are those of other members or topics")
        holder = self.ownership.holder
        if holder.shape != self.lag.shape or holder.min(initial=-1) < -1 or holder.max(initial=-1) >= n:
            raise InvalidGroupError(f"every partition needs a holder from -1 to {n - 1}")
        racks = self.racks
        if racks is not None and (len(racks.of_member) != n or len(racks.of_partition) != self.n_partitions):
            raise InvalidGroupError("racks are those of other members or partitions")

    def _check_constraints(self) -> None:
        if self.fixed is not None and self.fixed.shape != self.lag.shape:
            raise InvalidGroupError(f"fixed needs one entry for each of {self.n_partitions} partitions")
        if self.closed is not None and self.closed.shape != (self.n_members,):
            raise InvalidGroupError(f"closed needs one entry for each of {self.n_members} members")

    def _takers(self) -> Subscriptions:
        closed = self.closed
        return (
            self.subscriptions if closed is None or not closed.any() else self.subscriptions.without(closed)
        )

    def _check_capacity(self) -> None:
        capacity, n = self.capacity, len(self.member_ids)
        if capacity is not None and not (
            capacity.shape == (n,) and ((capacity >= LEAST_CAPACITY) & (capacity <= GREATEST_RATE)).all()
        ):
            raise InvalidGroupError(
                f"every member needs a capacity from {LEAST_CAPACITY} to {GREATEST_RATE} records per second, "
                "or none has one"
            )

    @property
    def n_members(self) -> int:
        """Number of members, N."""
        return len(self.member_ids)

    @property
    def n_partitions(self) -> int:
        """Number of partitions, P."""
        return self.topics.n_partitions

    def readable(self) -> Bools:
        """Return P entries: True if the partition's topic has a subscriber."""
        return self.topics.by_partition(self.subscriptions.subscriber_counts() > 0)

    def readers(self) -> Bools:
        """N entries: does the member subscribe to any topic that has partitions."""
        sets = self.subscriptions
        used = np.zeros(sets.n_sets, np.bool_)
        used[sets.set_of_topic[self.topics.counts > 0]] = True
        return sets.in_any(used)

    def has_equal_subscriptions(self) -> bool:
        """Does every member subscribe to every topic that has partitions and a subscriber."""
        return self._are_equal(self.subscriptions)

    def has_equal_takers(self) -> bool:
        """Return whether all members may get the same partitions."""
        return self._are_equal(self.takers)

    def is_fixed(self) -> Bools:
        """P entries: must the partition stay with its owner, because it is fixed or the owner is closed."""
        is_fixed = np.zeros(self.n_partitions, np.bool_) if self.fixed is None else self.fixed
        if self.closed is not None and self.n_members > 0:
            is_fixed = is_fixed | self.closed[self.owner]
        return is_fixed & (self.owner >= 0)

    def is_constrained(self) -> bool:
        """Return whether anything is fixed or closed; otherwise strategies can ignore both."""
        return self.fixed is not None or self.takers is not self.subscriptions

    def placeable(self) -> Bools:
        """P entries: may the partition have a member, its owner or one that takes it."""
        placeable: Bools = self.topics.by_partition(self.takers.subscriber_counts() > 0)
        return placeable | self.is_fixed() if self.is_constrained() else placeable

    def _are_equal(self, subscriptions: Subscriptions) -> bool:
        readers = subscriptions.subscriber_counts()
        return bool(((readers == self.n_members) | (readers == 0) | (self.topics.counts == 0)).all())
