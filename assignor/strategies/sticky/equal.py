"""Even counts with as few moves as even counts allow, for members that all subscribe to the same topics.

The linear path of the sticky family. In order of priority: counts differ by at most one; as many partitions as
possible stay with their owner; topics are spread over the members.
"""

import numpy as np

from assignor.model.arrays import Bools, Int32s, Int64s, stable_order
from assignor.model.assignment import Assignment
from assignor.model.group import Group


def assign_equal(group: Group) -> Assignment:
    """The target of a group with equal subscriptions (`Group.has_equal_subscriptions`).

    Every partition with a subscriber has a member, and counts differ by at most one. With f = P // N and
    r = P mod N, r members get f + 1 partitions: first those that own more than f, then the others, both in
    member order. A member over its quota keeps its first partitions by (number, topic). Unowned
    partitions are given out in that order: first each member in turn is filled up to f, then each member that is due
    one more gets it.

    What is fixed counts first. f is then the level to which the free partitions raise the members that have the fewest
    fixed ones, by water-filling; members with more than f fixed ones get nothing else, closed members stay as they are.
    The fixed partitions of a member over its quota come first.

    The partitions kept are sum(min(o_m, f)) + min(r, members with o_m > f), o_m what member m owns, and no
    assignment with even counts keeps more: a member keeps at most its quota, only members above f gain from a
    quota of f + 1, and there are r of those quotas. Water-filling gives the lexicographically least counts over any
    base (`unequal.blocks`, what is fixed on a member being a subscriber set of its own), so this holds with fixed
    partitions too.

    Complexity: O(P + N).

    Source: KIP-615, whose text steals one partition per unfilled member where more can be missing (P = 9,
    N = 4, three members owning 3 each); fixing the quotas first, as Kafka's AbstractStickyAssignor does,
    needs no stealing.
    """
    placeable = group.placeable()
    if not placeable.any():
        return Assignment.complete(group, np.full(group.n_partitions, -1, np.int32))
    return Assignment.complete(group, _even(group, placeable))


def _even(group: Group, placeable: Bools) -> Int32s:
    owned = np.bincount(group.owner[group.owner >= 0], minlength=group.n_members)
    fixed = group.is_fixed() if group.is_constrained() else None
    if fixed is None:
        floor, extras = divmod(int(placeable.sum()), group.n_members)
        quota = _quotas(owned, floor=floor, extras=extras)
        if not owned.any() and (dealt := _dealt(group, quota, floor=floor)) is not None:
            return dealt
    else:
        quota, floor = _quotas_above(group, owned, fixed, n_free=int((placeable & ~fixed).sum()))
    member: Int32s = group.owner.copy()
    member[_over_quota(group, owned, quota, fixed)] = -1
    # From here on counts are known without counting again: members above the quota have just the quota.
    kept = np.minimum(owned, quota)
    unowned = group.topics.spread_order(np.nonzero(placeable & (member < 0))[0])
    member[unowned] = _recipients(kept, quota, floor=floor)
    return member


def _dealt(group: Group, quota: Int64s, *, floor: int) -> Int32s | None:
    """Member of each partition if no member owns anything; None if the partitions have to be sorted for that."""
    recipients = _recipients(np.zeros(group.n_members, np.int64), quota, floor=floor)
    return group.topics.dealt(recipients, group.takers.subscriber_counts() > 0)


def _quotas_above(group: Group, owned: Int64s, fixed: Bools, *, n_free: int) -> tuple[Int64s, int]:
    """Partitions each member ends with when some are fixed, and the level to which the others are filled."""
    base = np.bincount(group.owner[fixed], minlength=group.n_members)
    open_ = np.ones(group.n_members, np.bool_) if group.closed is None else ~group.closed
    if not open_.any():
        return base, 0
    floor, extras = level_over(base[open_], n_free)
    quota = np.where(open_, np.maximum(base, floor), base)
    due = open_ & (base <= floor)
    preferred = np.argsort(np.where(due, owned <= floor, 2), kind="stable")
    quota[preferred[:extras]] += 1
    return quota, floor


def level_over(base: Int64s, amount: int) -> tuple[int, int]:
    """The level that `amount` whole partitions raise the least counts to, and how many members get one more.

    Water-filling: members whose base is above the level get nothing.

    Args:
        base: Partitions of each member that stay, at least one member.
        amount: Partitions to share out.
    """
    ascending = np.sort(base)
    # Partitions needed to raise the members before each one to its count.
    needed = np.arange(len(base)) * ascending - (np.cumsum(ascending) - ascending)
    n = int(np.searchsorted(needed, amount, side="right"))
    return divmod(amount + int(ascending[:n].sum()), n)


def _quotas(owned: Int64s, *, floor: int, extras: int) -> Int64s:
    """Partitions each member ends with: `floor`, and one more for `extras` of them."""
    # Members that own more than the floor come first: only they keep one partition more by a larger quota.
    preferred = np.argsort(owned <= floor, kind="stable")
    quota = np.full(len(owned), floor, np.int64)
    quota[preferred[:extras]] += 1
    return quota


def _over_quota(group: Group, owned: Int64s, quota: Int64s, fixed: Bools | None) -> Int64s:
    """Partitions that members above their quota lose: their last ones in spread order, fixed ones being first."""
    over = owned > quota
    if not over.any():
        return np.zeros(0, np.int64)
    candidates = np.nonzero((group.owner >= 0) & over[group.owner])[0]
    candidates = group.topics.spread_order(candidates)
    if fixed is not None:
        candidates = np.concatenate((candidates[fixed[candidates]], candidates[~fixed[candidates]]))
    by_owner: Int64s = candidates[stable_order(group.owner[candidates], below=group.n_members)]
    owner = group.owner[by_owner]
    starts = np.cumsum(np.where(over, owned, 0)) - np.where(over, owned, 0)
    # Rank of each partition among those of its owner, without a loop over members.
    rank = np.arange(len(by_owner)) - starts[owner]
    surplus: Int64s = by_owner[rank >= quota[owner]]
    return surplus


def _recipients(kept: Int64s, quota: Int64s, *, floor: int) -> Int32s:
    """The member of each unowned partition, these in spread order."""
    members = np.arange(len(kept), dtype=np.int32)
    # Neighbours in spread order are of different topics, so filling up one member at a time spreads topics.
    up_to_floor = np.repeat(members, np.maximum(np.minimum(quota, floor) - kept, 0))
    one_more = members[quota > np.maximum(kept, floor)]
    return np.concatenate((up_to_floor, one_more))
