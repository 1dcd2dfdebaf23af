"""Check that counts are as even as subscriptions allow, from the assignment alone."""

from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Bools, Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class AugmentingPath:
    """A path to more even counts: it starts at a member with `count` partitions and ends at `to_member`."""

    count: int
    to_member: int


def find_augmenting_path(holds: Bools, may_read: Bools, counts: Int64s) -> AugmentingPath | None:
    """Return a path of moves to a member with at least two partitions fewer; None if counts are most even.

    Along the path each member hands one partition to the next, so only the counts at its ends change. Without such a
    path (Harvey et al. call it cost-reducing) counts are most even, as an assignment without augmenting path is
    maximum in matching theory (Berge 1957).

    Proof. For a count k let B be the members that paths from members with k or more reach, these included, and A
    the partitions on B. Every member of B has at least k - 1, and no member outside B can read A, so any
    assignment has sum(max(load - (k - 1), 0)) >= |A| - (k - 1) |B|; this one has exactly that, since outside B
    no member has more than k - 1. As it holds for every k, the loads of every other assignment majorise these:
    sorted from the largest down, the counts are lexicographically least.

    Args:
        holds: T x N: does the member have a partition of the topic.
        may_read: T x N: does the member subscribe to the topic.
        counts: Partitions of each of N members.

    Example: a holds t-0 and t-1, b holds u-0, c nothing; b subscribes to t and u, c to u only. The path leads from a
    (2 partitions) over b to c (0): a gives t-0 to b, b gives u-0 to c, and every member has one.

    Complexity: O(T * N).

    Source: Harvey, Ladner, Lovász, Tamir, Semi-matchings for bipartite graphs and load balancing (2006).
    """
    # From the largest count down: what was reached from a larger count without a shorter end stays reached, so every
    # member and topic is visited once, and not once for each count.
    members = np.zeros(len(counts), np.bool_)
    topics = np.zeros(len(holds), np.bool_)
    for count in np.unique(counts)[::-1].tolist():
        new = (counts == count) & ~members
        while new.any():
            members |= new
            new_topics = holds[:, new].any(axis=1) & ~topics
            topics |= new_topics
            new = may_read[new_topics].any(axis=0) & ~members
            short = new & (counts < count - 1)
            if short.any():
                return AugmentingPath(count=count, to_member=int(np.argmax(short)))
    return None
