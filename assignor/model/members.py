"""Building a `Group` from members as the consumer protocol describes them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, pairwise, repeat

import numpy as np

from assignor.errors import InvalidGroupError
from assignor.model.arrays import Bools, Floats, Int64s
from assignor.model.claims import NO_GENERATION, ClaimArrays, resolve
from assignor.model.group import Group, IgnoredClaims
from assignor.model.java_order import java_order
from assignor.model.racks import Racks
from assignor.model.subscriptions import Subscriptions
from assignor.model.topics import Topics


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of a group: its subscription, its claims, and how fast it is."""

    member_id: str
    topics: Sequence[str]
    """Subscribed topics. One named twice counts once; one without metadata is ignored, as in Kafka."""
    instance_id: str | None = None
    """group.instance.id of a static member (KIP-345)."""
    owned: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Claimed partition numbers by topic. Not trusted: impossible claims are ignored and counted."""
    rack: str | None = None
    """client.rack."""
    generation: int = NO_GENERATION
    """Generation of the claims; below 0 is not known."""
    capacity: float | None = None
    """Records per second the member can drain, > 0; None when unknown."""
    closed: bool = False
    """Does it not follow plans (see `Group.closed`)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Claims:
    """Claims of members on partitions, sorted by member, and the number of impossible ones."""

    arrays: ClaimArrays
    ignored: IgnoredClaims

    def of_each(self, n_members: int) -> list[Int64s]:
        """The partitions that each member claims."""
        counts = np.bincount(self.arrays.member, minlength=n_members).tolist()
        ends = accumulate(counts, initial=0)
        return [self.arrays.partition[begin:end] for begin, end in pairwise(ends)]


def member_order(member: Member) -> tuple[bool, bytes, bytes]:
    """Sort key of the tie-break order: static members by instance id, then the others by member id.

    Source: Kafka's AbstractPartitionAssignor.MemberInfo.
    """
    static = member.instance_id is not None
    name = member.instance_id if member.instance_id is not None else member.member_id
    return (not static, java_order(name), java_order(member.member_id))


def build_group(
    *,
    topics: Topics,
    members: Sequence[Member],
    lag: Int64s | None = None,
    rate: Floats | None = None,
    replica_racks: Sequence[Collection[str]] | None = None,
    fixed: Bools | None = None,
    claims: Claims | None = None,
) -> Group:
    """Build the array form of a group, the same for any order of `members`.

    Args:
        topics: The topics with metadata; may include topics without subscribers.
        members: In any order.
        lag: Records by partition index, >= 0; without it every lag is 0.
        rate: Records per second by partition index, >= 0; without it nothing arrives.
        replica_racks: Racks of the replicas by partition index; without it, or when no member has a rack, racks
            are ignored.
        fixed: By partition index, see `Group.fixed`; without it nothing is fixed.
        claims: `claims_of` these members, in their order, where somebody has it already.

    Raises:
        InvalidGroupError: A member id appears twice, or a measure is out of range (see `Group`).

    Complexity: O(P + C + length of the distinct subscriptions), C the claims.
    """
    order = sorted(range(len(members)), key=lambda at: member_order(members[at]))
    ranked = [members[at] for at in order]
    member_ids = tuple(member.member_id for member in ranked)
    _refuse_duplicates(member_ids)
    index = topics.index()
    if claims is None:
        claims = claims_of(topics, [one.owned for one in members], [one.generation for one in members])
    return Group(
        topics=topics,
        member_ids=member_ids,
        subscriptions=Subscriptions.of([member.topics for member in ranked], index=index),
        ownership=resolve(_ranked(claims.arrays, order), n_partitions=topics.n_partitions),
        lag=np.zeros(topics.n_partitions, np.int64) if lag is None else lag,
        rate=np.zeros(topics.n_partitions, np.float64) if rate is None else rate,
        capacity=_capacities(ranked),
        racks=_racks(topics, ranked, replica_racks),
        fixed=fixed,
        closed=np.array([member.closed for member in ranked], np.bool_)
        if any(m.closed for m in ranked)
        else None,
        newest_generation=max((member.generation for member in ranked), default=NO_GENERATION),
        ignored_claims=claims.ignored,
    )


def _refuse_duplicates(member_ids: tuple[str, ...]) -> None:
    if len(set(member_ids)) < len(member_ids):
        twice = min((m for m in set(member_ids) if member_ids.count(m) > 1), key=java_order)
        raise InvalidGroupError(f"member id {twice!r} appears twice")


def claims_of(
    topics: Topics, owned: Sequence[Mapping[str, Sequence[int]]], generations: Sequence[int]
) -> Claims:
    """Return the claims on partitions that exist, and how many were on others.

    Args:
        topics: The topics with metadata.
        owned: What each member claims (`Member.owned`).
        generations: Of the claims of each.
    """
    # There can be a million claims, each in a mapping of its own: map and chain loop over them in C.
    index = topics.index()
    listed = list(chain.from_iterable(claimed.values() for claimed in owned))
    lengths = np.fromiter(map(len, listed), np.int64, len(listed))
    number = np.fromiter(chain.from_iterable(listed), np.int64, int(lengths.sum()))
    named = map(index.get, chain.from_iterable(owned), repeat(-1))
    topic = np.fromiter(named, np.int32, len(listed)).repeat(lengths)
    topics_claimed = np.array([len(claimed) for claimed in owned], np.int64)
    member = np.arange(len(owned), dtype=np.int32).repeat(topics_claimed).repeat(lengths)
    generation = np.array([max(one, NO_GENERATION) for one in generations], np.int32)
    partition = topics.partition_indices(topic, number)
    real = partition >= 0
    if not real.all():
        partition, member = partition[real], member[real]
    unknown = int((topic < 0).sum())
    return Claims(
        arrays=ClaimArrays(partition=partition, member=member, generation=generation[member]),
        ignored=IgnoredClaims(unknown_topic=unknown, out_of_range=len(topic) - len(partition) - unknown),
    )


def _ranked(claims: ClaimArrays, order: Sequence[int]) -> ClaimArrays:
    """The claims with members numbered in this order."""
    rank = np.empty(len(order), np.int32)
    rank[np.array(order, np.int64)] = np.arange(len(order), dtype=np.int32)
    return replace(claims, member=rank[claims.member])


def _capacities(members: Sequence[Member]) -> Floats | None:
    """Drain rates, a missing one as the median of the known ones; None when none is known.

    The median, because a member that nothing is known about is most likely one more of the same deployment.
    """
    known = [member.capacity for member in members if member.capacity is not None]
    if not known:
        return None
    median = float(np.median(known))
    return np.array([median if m.capacity is None else m.capacity for m in members], np.float64)


def _racks(
    topics: Topics, members: Sequence[Member], replica_racks: Sequence[Collection[str]] | None
) -> Racks | None:
    if replica_racks is None or not any(member.rack for member in members):
        return None
    if len(replica_racks) != topics.n_partitions:
        raise InvalidGroupError(f"racks for {len(replica_racks)} of {topics.n_partitions} partitions")
    return Racks.of(members=[member.rack for member in members], partitions=replica_racks)
