"""Two-step hand-over: no partition changes hands while its holder may still read it.

In a cooperative rebalance a member keeps what it owns until an assignment without it arrives. Step one
therefore gives out only partitions that stay where they are or have no holder, and the members revoke the rest; step
two, the same rule after that, gives out the whole target.
"""

import numpy as np

from assignor.model.arrays import Bools
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.group import Group


def withheld(group: Group, target: Assignment) -> Bools:
    """P entries: whether the partition must wait for a revocation before its target may have it.

    It must if its holder is a member other than the target, or if it is contested, for then two members may be reading
    it. The holder is the winning claimant, even if it no longer subscribes: it has to revoke first. A stale claimant,
    beaten by a newer claim, is not the holder, so it waits like any other member.
    """
    holder = group.ownership.holder
    if holder.max(initial=-1) < 0 and not group.ownership.contested.any():
        return np.zeros(group.n_partitions, np.bool_)
    held_by_another: Bools = (holder >= 0) & (holder != target.member)
    return np.logical_and(held_by_another | group.ownership.contested, target.member >= 0)


def next_step(group: Group, target: Assignment, *, by_number: bool = False) -> Assignment:
    """The part of `target` that may be handed out now.

    Called with the group as it is, this is step one. Called with the group after its members have revoked,
    it is step two and equals `target`: no other member holds anything of it. Keep the target between the two steps; a
    strategy that depends on lag would choose another one, and the hand-over might never end.

    Args:
        group: The group with its present holders.
        target: The complete target.
        by_number: Hand over partition numbers whole: while one partition of a number waits, no member is given
            another of that number that it does not hold yet. For strategies that join topics (KIP-315).

    Source: KIP-429; Kafka's CooperativeStickyAssignor, which misses contested and stale claims on its general
    path.
    """
    # Monotone: what is given out now is part of the target, so the second step only adds to the first (KIP-429).
    waiting = withheld(group, target)
    if not waiting.any():
        return target
    if by_number:
        waiting |= _of_waiting_numbers(group, waiting) & (target.member != group.ownership.holder)
    return target.without(waiting & (target.member >= 0), why=Unassigned.WITHHELD)


def _of_waiting_numbers(group: Group, waiting: Bools) -> Bools:
    number = group.topics.number_of
    waits = np.zeros(int(group.topics.counts.max(initial=0)), np.bool_)
    waits[number[waiting]] = True
    return waits[number]
