"""Assignors for `partition_assignment_strategy` of aiokafka: the strategies, and the plans of the control topic.

Imports `clients.plugin` and aiokafka. Start with `following`, then `assignors`; `background` is what follows the
topics, `private` what the client does not offer.
"""

from assignor.clients.aiokafka.assignors import MemberAssignor, StrategyAssignor, default_assignors
from assignor.clients.aiokafka.following import Following
from assignor.clients.aiokafka.lag_aware import LagAwareAssignor
from assignor.clients.plugin.membership import NotAttachedError

__all__ = [
    "Following",
    "LagAwareAssignor",
    "MemberAssignor",
    "NotAttachedError",
    "StrategyAssignor",
    "default_assignors",
]
