"""Strategy `cooperative-sticky`: the target of `sticky`, handed over in two rebalances (KIP-429)."""

from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.sticky import strategy as sticky


def assign(group: Group) -> Assignment:
    """The target of the group, the same as that of `strategy.assign`.

    Under the cooperative protocol a leader gives out `handover.next_step` of it, and the members that revoked
    something join again. The second rebalance is the last, even if its leader computes the target again: the first
    target only adds to what members hold after the first rebalance, so among the most even assignments there is one
    that moves nothing that is held, and the fewest moves are none. Then nothing waits for a revocation.

    Source: Kafka's CooperativeStickyAssignor; KIP-429.
    """
    return sticky.assign(group)
