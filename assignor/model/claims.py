"""The holder of a partition that several members claim.

A claim is a partition that a member reports as owned. After a missed rebalance a member repeats an outdated claim, so
claims carry the generation in which they were valid (KIP-341).
"""

from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Bools, Int32s, Int64s

UNCLAIMED = int(np.iinfo(np.int32).min)
NO_GENERATION = -1
"""Generation of a claim that came without one: user data v0, or an empty subscription."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClaimArrays:
    """C claims in any order; the same claim may occur twice."""

    partition: Int64s
    """Index of the claimed partition, 0 <= partition < P."""
    member: Int32s
    """Claiming member, 0 <= member < N."""
    generation: Int32s
    """Newest generation in which the claim was valid, `NO_GENERATION` when not known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ownership:
    """The outcome for P partitions."""

    holder: Int32s
    """Winning claimant of each partition, -1 without a claim or if it is contested."""
    contested: Bools
    """True if two members claim the partition in the same newest generation."""
    generation: Int32s
    """Newest generation in which a member claims the partition, `UNCLAIMED` without a claim."""


def resolve(claims: ClaimArrays, *, n_partitions: int) -> Ownership:
    """Return one holder per partition: the claimant of the newest generation, or none if two share it.

    A claim of an older generation stands as long as no newer one contradicts it, as in Kafka since
    KAFKA-14639. Two claimants of one generation cannot both be right and no order between them is known, so
    the partition has no holder; it is contested, because either of the two may still be reading it.

    Complexity: O(C + P).

    Source: KIP-341; Kafka's AbstractStickyAssignor.
    """
    # `maximum.at` needs no sort of the claims, so a million of them take linear time.
    newest = np.full(n_partitions, UNCLAIMED, np.int32)
    np.maximum.at(newest, claims.partition, claims.generation)
    current = claims.generation == newest[claims.partition]
    partition, member = claims.partition[current], claims.member[current]
    last = np.full(n_partitions, -1, np.int32)
    np.maximum.at(last, partition, member)
    # All claimants are one member exactly when each is the greatest of them: no sort or grouping is needed.
    contested = np.zeros(n_partitions, np.bool_)
    contested[partition[member != last[partition]]] = True
    last[contested] = -1
    return Ownership(holder=last, contested=contested, generation=newest)
