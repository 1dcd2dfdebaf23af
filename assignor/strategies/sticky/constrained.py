"""Strategy `constrained-cooperative-sticky`: the sticky target in linear time, or a refusal (KIP-615)."""

from assignor.errors import UnequalSubscriptionsError
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.sticky.equal import assign_equal

NAME = "constrained-cooperative-sticky"


def assign(group: Group) -> Assignment:
    """The target of the group, see `equal.assign_equal`; `handover` says what may be given out when.

    Raises:
        UnequalSubscriptionsError: Members subscribe to different topics.

    Complexity: O(P + N).

    Source: KIP-615.
    """
    if not group.has_equal_subscriptions():
        raise UnequalSubscriptionsError(NAME, "cooperative-sticky")
    return assign_equal(group)
