"""Strategy `sticky`: counts as even as the subscriptions allow, then as few moves as possible (KIP-54, KIP-341).

Its rebalance protocol is eager: members revoke everything before they join, and send in their user data what they
owned. `protocol.kafka.sticky` reads that, `model.claims` decides between members that contradict one another.
"""

from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.sticky.equal import assign_equal
from assignor.strategies.sticky.unequal.solver import assign_unequal


def assign(group: Group) -> Assignment:
    """The target of the group: every partition with a subscriber has a member.

    Balance comes before stickiness. Equal subscriptions take the linear path, see
    `equal.assign_equal`; `unequal.solver.assign_unequal` has the promises for unequal ones.
    A partition that two members claim in one generation has no owner: it counts as a move for any member.
    Racks are ignored. What is fixed stays, and counts are as even as it allows.

    Complexity: O(P + N) for equal subscriptions.

    Source: Kafka's StickyAssignor, whose path for unequal subscriptions can end uneven and takes quadratic
    time; KIP-54; KIP-341.
    """
    return assign_equal(group) if group.has_equal_subscriptions() else assign_unequal(group)
