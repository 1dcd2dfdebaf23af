"""Strategy `constrained-cooperative-sticky`: the sticky target in linear time, or a refusal (KIP-615)."""

from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from assignor.errors import UnequalSubscriptionsError
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.names import CONSTRAINED_COOPERATIVE_STICKY, COOPERATIVE_STICKY
from assignor.strategies.sticky.equal import assign_equal

OldClaims: TypeAlias = Literal["drop", "keep"]


def assign(group: Group, *, old_claims: OldClaims = "drop") -> Assignment:
    """The target of the group, see `equal.assign_equal`; `handover` says what may be given out when.

    Args:
        group: The group with its owners.
        old_claims: "drop" is the proposal: a member with an older generation than the newest in the group keeps
            nothing of its claims, unless it is fixed. "keep" is what Kafka does since KAFKA-14639: such a claim
            stands as long as no newer one contradicts it, which moves less.

    Raises:
        UnequalSubscriptionsError: Members subscribe to different topics.

    Complexity: O(P + N).

    Source: KIP-615.
    """
    if not group.has_equal_subscriptions():
        raise UnequalSubscriptionsError(CONSTRAINED_COOPERATIVE_STICKY, COOPERATIVE_STICKY)
    return assign_equal(_without_old_claims(group) if old_claims == "drop" else group)


def _without_old_claims(group: Group) -> Group:
    ownership = group.ownership
    is_old = (ownership.holder >= 0) & (ownership.generation < group.newest_generation) & ~group.is_fixed()
    if not is_old.any():
        return group
    holder = np.where(is_old, np.int32(-1), ownership.holder)
    return replace(group, ownership=replace(ownership, holder=holder))
